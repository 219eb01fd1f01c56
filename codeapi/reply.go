package codeapi

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// reply answers v as compact JSON with a weak tag. Texts that are not UTF-8 are mended.
func reply(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // nosniff and the content type keep browsers from reading it as a page
	if err := e.Encode(v); err != nil {
		refuse(w, fmt.Errorf("encode answer: %w", err))
		return
	}
	send(w, status, "application/json; charset=utf-8", bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// send answers a whole body, or that the client has it already.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("ETag", weakTag(body))
	if rec, ok := w.(*recorder); ok && status == http.StatusOK && rec.has(h.Get("ETag")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails when the client is gone; nobody is left to tell
}

// weakTag is the tag that the contract's reference gives a body: its length and its SHA-1,
// which protects nothing here.
func weakTag(body []byte) string {
	sum := sha1.Sum(body)
	return fmt.Sprintf(`W/"%x-%s"`, len(body), base64.StdEncoding.EncodeToString(sum[:])[:27])
}
