package session

import "writ"

// Detail is how much of its objects a list of a session says (spec/03 §11).
type Detail string

const (
	DetailSimple     Detail = "simple" // also for any other word
	DetailSummary    Detail = "summary"
	DetailFull       Detail = "full"
	DetailNormalized Detail = "normalized"
)

// Listing is a list of objects as the contract has it: a value whose JSON is the answer,
// an array also when there are none.
func Listing(os []writ.Object, d Detail) any {
	switch d {
	case DetailSummary:
		return each(os, summaryOf)
	case DetailFull:
		return each(os, func(o writ.Object) full {
			f := full{summary: summaryOf(o), ContentType: o.Type}
			f.Metadata = metadata{ContentType: o.Type, Name: o.Name, Encoding: "none"}
			if o.ReadOnly {
				f.Metadata.ReadOnly = "true"
			}
			return f
		})
	case DetailNormalized:
		return each(os, func(o writ.Object) normalized {
			return normalized{ID: o.ID, Name: o.Name, Session: o.Session, Size: o.Size, ContentType: o.Type, LastModified: stamp(o), ReadOnly: o.ReadOnly}
		})
	}
	return each(os, writ.Object.Key)
}

func each[T any](os []writ.Object, fn func(writ.Object) T) []T {
	out := make([]T, len(os)) // not nil: null is no list
	for i, o := range os {
		out[i] = fn(o)
	}
	return out
}

type summary struct {
	Name         string `json:"name"`
	Size         int64  `json:"size"`
	LastModified string `json:"lastModified"`
	ETag         string `json:"etag"`
}

func summaryOf(o writ.Object) summary {
	return summary{Name: o.Key(), Size: o.Size, LastModified: stamp(o), ETag: ETag(o)}
}

type full struct {
	summary
	Metadata    metadata `json:"metadata"`
	VersionID   *string  `json:"versionId"` // always null
	ContentType string   `json:"contentType"`
}

type metadata struct {
	ContentType string `json:"content-type"`
	Name        string `json:"original-filename"`
	Encoding    string `json:"original-filename-encoded"`
	ReadOnly    string `json:"read-only,omitempty"` // "true"
}

type normalized struct {
	ID           writ.ObjectID  `json:"id"`
	Name         string         `json:"name"`
	Session      writ.SessionID `json:"storage_session_id"`
	Size         int64          `json:"size"`
	ContentType  string         `json:"contentType"`
	LastModified string         `json:"lastModified"`
	ReadOnly     bool           `json:"read_only,omitempty"`
}

// Metadata is what the contract says of one object.
type Metadata struct {
	Name         string `json:"name"`
	OriginalName string `json:"originalFilename"`
	Size         int64  `json:"size"`
	LastModified string `json:"lastModified"`
	ETag         string `json:"etag"`
	ContentType  string `json:"contentType"`
	ReadOnly     bool   `json:"readOnly"`
}

// MetadataOf is what the contract says of o.
func MetadataOf(o writ.Object) Metadata {
	return Metadata{
		Name: o.Key(), OriginalName: o.Name, Size: o.Size, LastModified: stamp(o),
		ETag: ETag(o), ContentType: o.Type, ReadOnly: o.ReadOnly,
	}
}

// stamp is the time of an object with milliseconds also when they are 0.
func stamp(o writ.Object) string { return o.Created.UTC().Format("2006-01-02T15:04:05.000Z") }

// ETag is an object's tag, without quotes. It is over where the object is as well as over
// its bytes: whoever has the same bytes elsewhere learns nothing from it.
func ETag(o writ.Object) string {
	return string(digestOf("writ etag 1", string(o.Session), string(o.ID), string(o.SHA256))[:etagSize])
}

// etagSize is how many hexadecimal digits clients know.
const etagSize = 32
