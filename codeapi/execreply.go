package codeapi

import (
	"writ"
	"writ/interpreter"
)

// execReply is the answer of a run, its members in the contract's order (spec/03 §6.2);
// those after wall_time are only there when they say something (§13).
type execReply struct {
	Session writ.SessionID `json:"session_id"`
	Files   []replyFile    `json:"files"` // never null
	Stdout  string         `json:"stdout"`
	Stderr  string         `json:"stderr"`
	Code    *int           `json:"code"`
	Signal  *string        `json:"signal"`
	Message *string        `json:"message"`
	Status  *string        `json:"status"`
	WallMS  int64          `json:"wall_time"`

	Runtime       string      `json:"runtime_session_id,omitempty"`
	RuntimeStatus string      `json:"runtime_status,omitempty"`
	Deleted       []string    `json:"deleted_files,omitempty"`
	Truncation    *truncation `json:"artifact_truncation,omitempty"`
}

type replyFile struct {
	ID           writ.ObjectID   `json:"id"`
	Name         string          `json:"name"`
	Session      writ.SessionID  `json:"storage_session_id"`
	ModifiedFrom *writ.ObjectRef `json:"modified_from,omitempty"`
	Inherited    bool            `json:"inherited,omitempty"`
}

// truncation tells of files that a caller expects and does not get. Clients drop it
// unless the reasons add up to the count.
type truncation struct {
	Code    string                 `json:"code"` // artifact_truncated
	Reasons map[writ.DropClass]int `json:"reasons"`
	Skipped []string               `json:"skipped"` // the first of them
	Count   int                    `json:"skipped_count"`
}

// maxSkipped is how many names of files a truncation may have.
const maxSkipped = 20

func execReplyOf(r interpreter.Reply) execReply {
	out := execReply{
		Session: r.Session, Files: make([]replyFile, len(r.Files)), Stdout: r.Stdout, Stderr: r.Stderr,
		Code: r.Code, Signal: orNull(r.Signal), Message: orNull(r.Message), Status: orNull(r.Status), WallMS: r.WallMS,
		Runtime: r.Runtime, RuntimeStatus: r.RuntimeStatus, Deleted: r.Deleted, Truncation: truncationOf(r.Dropped),
	}
	for i, f := range r.Files {
		out.Files[i] = replyFile{ID: f.Object.ID, Name: f.Name, Session: f.Object.Session, ModifiedFrom: f.ModifiedFrom, Inherited: f.Inherited}
	}
	return out
}

// truncationOf tells of the dropped files that are named. Those of a kind that nobody
// asked for are none that a caller expects.
func truncationOf(dropped []writ.DroppedFile) *truncation {
	t := &truncation{Code: "artifact_truncated", Reasons: map[writ.DropClass]int{}}
	for _, d := range dropped {
		switch d.Class {
		case writ.DropFiles, writ.DropSize, writ.DropDepth, writ.DropPath, writ.DropUnreadable:
		default:
			continue
		}
		t.Reasons[d.Class]++
		if t.Count++; len(t.Skipped) < maxSkipped {
			t.Skipped = append(t.Skipped, d.Path)
		}
	}
	if t.Count == 0 {
		return nil
	}
	return t
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
