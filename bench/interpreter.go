package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// fileBytes is how large the file is that is sent and fetched: just below what the
// contract lets a file have.
const fileBytes = 25_000_000

// madeFiles is how many files a run leaves: as many as are kept.
const madeFiles = 50

// everyone may come as often as the bench does.
const interpreterConfiguration = `
listen: 127.0.0.1:0
interpreter:
  listen: 127.0.0.1:0
  auth: local
  rates:
    exec: {most: 1000000, window: 30s}
    upload: {most: 1000000, window: 30s}
    download: {most: 1000000, window: 30s}
    fetch: {most: 1000000, window: 30s}
runner: {uid_base: 875000}
log: {level: warn}
`

// interpreter is a writ serve on a folder of its own, as the code interpreter of one user.
type interpreter struct {
	cmd  *exec.Cmd
	url  string
	http http.Client
}

var interpreterAt = regexp.MustCompile(`(?mi)^(?:code )?interpreter: +(http://\S+)`)

func startInterpreter(ctx context.Context, exe, data string) (*interpreter, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(data, "config.yaml"), []byte(interpreterConfiguration), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(data, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &interpreter{cmd: exec.CommandContext(ctx, exe, "--data", data, "serve")}
	s.cmd.Stderr = log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; settle(ctx) {
		said, err := os.ReadFile(log.Name())
		if at := interpreterAt.FindSubmatch(said); err == nil && at != nil {
			s.url = string(at[1])
			return s, nil
		}
	}
	s.stop()
	said, _ := os.ReadFile(log.Name())
	return nil, fmt.Errorf("the code interpreter does not say where it serves\n%s", said)
}

func (s *interpreter) stop() {
	s.http.CloseIdleConnections()
	_ = s.cmd.Process.Signal(os.Interrupt) // it may be gone
	_ = s.cmd.Wait()
}

// send sends a request, and has the answer of 200 read by read.
func (s *interpreter) send(ctx context.Context, method, path, kind string, body io.Reader, read func(io.Reader) error) error {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return err
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, said)
	}
	return read(resp.Body)
}

// exec runs code of Python, which must leave so many files.
func (s *interpreter) exec(ctx context.Context, code string, files int) error {
	body, err := json.Marshal(map[string]string{"lang": "py", "code": code})
	if err != nil {
		return err
	}
	var ran struct {
		Code  int               `json:"code"`
		Files []json.RawMessage `json:"files"`
	}
	err = s.send(ctx, http.MethodPost, "/exec", "application/json", bytes.NewReader(body),
		func(r io.Reader) error { return json.NewDecoder(r).Decode(&ran) })
	return wanted(err, ran.Code == 0 && len(ran.Files) == files)
}

// upload sends bytes as one file, and answers where they are.
func (s *interpreter) upload(ctx context.Context, content []byte) (path string, err error) {
	out, in := io.Pipe()
	form := multipart.NewWriter(in)
	sent := make(chan error, 1)
	go func() { // ends when the form was read, or the pipe is closed
		err := form.WriteField("kind", "user")
		var part io.Writer
		if err == nil {
			part, err = form.CreateFormFile("file", "bench.bin")
		}
		if err == nil {
			_, err = part.Write(content)
		}
		sent <- errors.Join(err, form.Close(), in.Close())
	}()
	var kept struct {
		Session string `json:"storage_session_id"`
		Files   []struct {
			ID string `json:"fileId"`
		} `json:"files"`
	}
	err = s.send(ctx, http.MethodPost, "/upload", form.FormDataContentType(), out,
		func(r io.Reader) error { return json.NewDecoder(r).Decode(&kept) })
	err = errors.Join(err, out.Close(), <-sent)
	if err = wanted(err, len(kept.Files) == 1); err != nil {
		return "", err
	}
	return kept.Session + "/" + kept.Files[0].ID, nil
}

// download fetches a file into one of the disk.
func (s *interpreter) download(ctx context.Context, path, to string) error {
	return s.send(ctx, http.MethodGet, "/download/"+path+"?kind=user", "", nil,
		func(r io.Reader) error { return written(to, r) })
}

// written writes a file, and answers once its bytes are on the disk.
func written(to string, r io.Reader) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, r)
	return wanted(errors.Join(err, f.Sync(), f.Close()), n == fileBytes)
}

// interpreting measures the code interpreter, n times, beside the same without it.
func interpreting(ctx context.Context, exe, dir string, n int) (tables []*table, err error) {
	s, err := startInterpreter(ctx, exe, filepath.Join(dir, "interpreter"))
	if err != nil {
		return nil, err
	}
	defer s.stop()
	content := make([]byte, fileBytes)
	if _, err := rand.Read(content); err != nil {
		return nil, err
	}
	source, copied, root := filepath.Join(dir, "source.bin"), filepath.Join(dir, "copy.bin"), filepath.Join(dir, "made")
	if err := errors.Join(written(source, bytes.NewReader(content)), os.Mkdir(root, 0o700)); err != nil {
		return nil, err
	}
	at, err := s.upload(ctx, content)
	if err != nil {
		return nil, err
	}
	cp := timed(func() error {
		f, err := os.Open(source)
		if err != nil {
			return err
		}
		defer f.Close()
		return written(copied, f)
	})
	made := fmt.Sprintf("for i in range(%d): open('f%%d.txt' %% i, 'w').write('text %%d\\n' %% i)", madeFiles)
	few := max(n/4, 1)
	for _, m := range []struct {
		name  string
		times int
		base  series
		bare  func() (time.Duration, error)
		writ  func() error
	}{
		{"exec `print(1)` over HTTP", n, series{id: "bwrap", name: "bare bwrap"},
			timed(func() error { return bareIn(ctx, root, "/usr/bin/python3", "-c", "print(1)").Run() }),
			func() error { return s.exec(ctx, "print(1)", 0) }},
		{fmt.Sprintf("exec that leaves %d files", madeFiles), few, series{id: "bwrap", name: "bare bwrap, files in a folder"},
			timed(func() error { return bareIn(ctx, root, "/usr/bin/python3", "-c", made).Run() }),
			func() error { return s.exec(ctx, made, madeFiles) }},
		{fmt.Sprintf("upload of %d MB", fileBytes/1_000_000), few, series{id: "cp", name: "copy and fsync"}, cp,
			func() error { _, err := s.upload(ctx, content); return err }},
		{fmt.Sprintf("download of %d MB into a file, with fsync", fileBytes/1_000_000), few, series{id: "cp", name: "copy and fsync"}, cp,
			func() error { return s.download(ctx, at, copied) }},
	} {
		t := &table{name: m.name, bases: []string{m.base.id}, rows: []*series{&m.base, {id: "writ", name: "writ"}}}
		for range m.times {
			if err := errors.Join(m.base.measure(m.bare), t.row("writ").measure(timed(m.writ))); err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			settle(ctx)
		}
		tables = append(tables, t)
	}
	return tables, nil
}
