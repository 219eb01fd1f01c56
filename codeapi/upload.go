package codeapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"writ"
	"writ/session"
)

const (
	// uploadTime is in which a file of a form must have come (spec/03 §10.1).
	uploadTime = 30 * time.Second
	// undoTime is for taking back what was kept of an upload that failed.
	undoTime = 10 * time.Second
)

const tooLarge = "File size limit exceeded"

// uploaded is a file of an answer.
type uploaded struct {
	Name string        `json:"filename"`
	ID   writ.ObjectID `json:"fileId"`
}

// uploadOne is POST /upload: all files of a form are kept, or none (spec/03 §10.1).
func (a *API) uploadOne(w http.ResponseWriter, r *http.Request, who writ.Principal) {
	in := intake{a: a, who: who}
	files := []uploaded{} // never null
	err := in.each(w, r, func(file *filePart) error {
		o, err := in.keep(r.Context(), file)
		if err == nil {
			files = append(files, uploaded{Name: o.Name, ID: o.ID})
		}
		return err
	})
	if err != nil {
		in.undo(r.Context())
		refuseUpload(w, r, err)
		return
	}
	reply(w, http.StatusOK, struct {
		Message string         `json:"message"`
		Session writ.SessionID `json:"storage_session_id"`
		Files   []uploaded     `json:"files"`
	}{"success", in.session(), files})
}

// intake puts the files of one form into one session, which is made for the first of them
// that has a name and an owner. Until the answer tells them nobody knows the ids, and so
// nobody reads what an upload that fails has kept so far, nor what a crash leaves until it
// expires.
type intake struct {
	a   *API
	who writ.Principal
	of  session.Entity
	in  writ.SessionID // empty until it is made
}

// each calls fn with each file of the form of r, in order, and ends with its first error.
// A form that breaks off is an error also when fn took all of its files.
func (in *intake) each(w http.ResponseWriter, r *http.Request, fn func(*filePart) error) error {
	f, err := openForm(w, r, in.a.uploadTime)
	if err != nil {
		return err
	}
	for {
		file, err := f.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = fn(file)
		}
		if err != nil {
			return err
		}
	}
	drain(r.Body) // what follows the form
	return nil
}

// keep keeps a file. A form that breaks off in it is a refusal; what is wrong with the file
// itself is told by fileFault.
func (in *intake) keep(ctx context.Context, file *filePart) (writ.Object, error) {
	if err := file.form.pace(); err != nil {
		return writ.Object{}, err
	}
	if file.fault != nil {
		return writ.Object{}, file.fault
	}
	if fault := session.NameFault(file.name); fault != "" { // before a session is made for it
		return writ.Object{}, badForm("file name %s", fault)
	}
	if in.in == "" {
		made, err := in.a.svc.Sessions.Create(ctx, in.who, file.of)
		if err != nil {
			return writ.Object{}, err
		}
		in.of, in.in = file.of, made.ID
	}
	o, err := in.a.svc.Sessions.Put(ctx, in.who, in.of, in.in, session.File{
		Name: file.name, Type: file.media, ReadOnly: file.readOnly, Body: file.body,
		Max: max(in.a.opt.FileBytes(in.who)-1, 0), // as many as the limit are too many
	})
	if lost := file.unread(); lost != nil { // whatever became of the file, and of the request's context
		return writ.Object{}, lost
	}
	return o, err
}

// session is the id to answer with: of a session that does not exist when nothing is kept.
func (in *intake) session() writ.SessionID {
	if in.in == "" {
		return writ.NewSessionID()
	}
	return in.in
}

// undo takes back the session with all that was kept, whether or not the client is still
// there. What it cannot take back expires.
func (in *intake) undo(ctx context.Context) {
	if in.in == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := in.a.svc.Sessions.Discard(ctx, in.who, in.of, in.in); err != nil {
		in.a.log.WarnContext(ctx, "files of a failed upload stay until they expire", "session", in.in, "err", err)
	}
}

// refuseUpload answers err, of a form or a file of it.
func refuseUpload(w http.ResponseWriter, r *http.Request, err error) {
	if status, text := fileFault(err); status != 0 {
		err = formFault(status, text, err)
	}
	refuseEarly(w, r, err)
}

// fileFault is the status and the words for what is wrong with a file, or with how much
// there is of them already. The status is 0 for an error that is not of one file.
func fileFault(err error) (status int, text string) {
	if _, whole := errors.AsType[*refusal](err); whole {
		return 0, ""
	}
	switch {
	case writ.CodeOf(err) == writ.CodeFileTooLarge:
		return http.StatusRequestEntityTooLarge, tooLarge
	case writ.KindOf(err) == writ.Exhausted: // a bound of a session or a tenant
		return http.StatusRequestEntityTooLarge, shorten(writ.Message(err))
	case writ.KindOf(err) == writ.Invalid:
		return http.StatusBadRequest, shorten(writ.Message(err))
	}
	return 0, ""
}
