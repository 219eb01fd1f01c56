package codeapi

import (
	"net/http"
	"strings"
	"unicode"

	"writ"
	"writ/session"
)

// maxBatch is how many files one batch may have.
const maxBatch = 200

// batchFile is how one file of a batch fared.
type batchFile struct {
	Status string        `json:"status"` // success, error
	Name   string        `json:"filename"`
	ID     writ.ObjectID `json:"fileId,omitempty"`
	Error  string        `json:"error,omitempty"`
}

type batchAnswer struct {
	Message      string         `json:"message"` // success, partial_success, error
	Session      writ.SessionID `json:"storage_session_id"`
	Files        []batchFile    `json:"files"` // in the order of the form
	Succeeded    int            `json:"succeeded"`
	Failed       int            `json:"failed"`
	LimitReached bool           `json:"filesLimitReached,omitempty"`
	MaxFiles     int            `json:"maxFiles,omitempty"`
}

// uploadBatch is POST /upload/batch: each file of a form is kept or not, whatever becomes
// of the others (spec/03 §10.2). Files behind the 200th are ignored. A form that breaks
// off, and a failure of ours, keep none.
func (a *API) uploadBatch(w http.ResponseWriter, r *http.Request, who writ.Principal) {
	in := intake{a: a, who: who}
	var answer batchAnswer
	err := in.each(w, r, func(file *filePart) error {
		if len(answer.Files) == maxBatch {
			answer.LimitReached, answer.MaxFiles = true, maxBatch
			return nil
		}
		o, err := in.keep(r.Context(), file)
		if err == nil {
			answer.Files = append(answer.Files, batchFile{Status: "success", Name: o.Name, ID: o.ID})
			answer.Succeeded++
			return nil
		}
		if status, text := fileFault(err); status != 0 {
			answer.Files = append(answer.Files, batchFile{Status: "error", Name: label(file.name), Error: text})
			answer.Failed++
			return nil
		}
		return err
	})
	if err != nil {
		in.undo(r.Context())
		refuseUpload(w, r, err)
		return
	}
	if len(answer.Files) == 0 {
		reply(w, http.StatusBadRequest, envelope{Error: "No files provided"})
		return
	}
	answer.Session = in.session()
	status := http.StatusOK
	switch {
	case answer.Succeeded == 0:
		in.undo(r.Context())
		answer.Message, status = "error", http.StatusBadRequest
	case answer.Failed > 0:
		answer.Message = "partial_success"
	default:
		answer.Message = "success"
	}
	reply(w, status, answer)
}

// label is a name as it may be told: one that is refused becomes a single word without
// what leads anywhere (spec/03 §18, IO-05).
func label(name string) string {
	if session.NameFault(name) == "" {
		return name
	}
	out := []rune(strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == unicode.ReplacementChar || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, name))
	if s := string(out[:min(len(out), session.MaxNameLength)]); strings.Trim(s, ".") != "" {
		return s
	}
	return "_"
}
