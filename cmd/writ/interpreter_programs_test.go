package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"os/signal"
	"strings"
	"time"
)

// scriptPrograms are what scripts execute beside writ; as programs they may work in the
// background.
var scriptPrograms = map[string]func(){
	"code":      program(codeProgram),
	"token":     program(tokenProgram),
	"keyserver": program(keyServerProgram),
}

func program(run func(args []string) error) func() {
	return func() {
		if err := run(os.Args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
			os.Exit(1)
		}
	}
}

// code STATUS METHOD URL [PART...] sends a request to the code interpreter's API, as a front
// end does, and prints the body of the answer, which must have that status. A part is
// header=NAME:VALUE, json=TEXT, field=NAME=VALUE or file=PATH of a form, in their order, or
// -i, which prints the answer's headers, too.
func codeProgram(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: code STATUS METHOD URL [PART...]")
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	header, kind, headers, times := http.Header{}, "", false, 1
	for _, part := range args[3:] {
		what, v, _ := strings.Cut(part, "=")
		name, value, _ := strings.Cut(v, "=")
		switch what {
		case "-i":
			headers = true
		case "header":
			name, value, _ := strings.Cut(v, ":")
			header.Add(name, value)
		case "times":
			if _, err := fmt.Sscan(v, &times); err != nil {
				return err
			}
		case "json":
			kind = "application/json"
			body.WriteString(v)
		case "field":
			kind = form.FormDataContentType()
			if err := form.WriteField(name, value); err != nil {
				return err
			}
		case "file":
			kind = form.FormDataContentType()
			data, err := os.ReadFile(v)
			if err != nil {
				return err
			}
			w, err := form.CreatePart(textproto.MIMEHeader{
				"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="%s"`, v)}, "Content-Type": {"text/plain"},
			})
			if err == nil {
				_, err = w.Write(data)
			}
			if err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown part %q", part)
		}
	}
	if kind == form.FormDataContentType() {
		if err := form.Close(); err != nil {
			return err
		}
	}
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	for range times {
		if err := send(args[0], args[1], args[2], header, body.Bytes(), headers); err != nil {
			return err
		}
	}
	return nil
}

// send sends one request, whose answer must have that status.
func send(status, method, url string, header http.Header, body []byte, headers bool) error {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if headers {
		if err := resp.Header.Write(os.Stdout); err != nil {
			return err
		}
	}
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		return err
	}
	if got := fmt.Sprint(resp.StatusCode); got != status {
		return fmt.Errorf("status %s, want %s", got, status)
	}
	return nil
}

// token KEYFILE KID SUB [CLAIM=JSON...] prints a token for a user, signed with the key in
// KEYFILE, which it makes when there is none; KEYFILE.json is then a set with its public
// half.
func tokenProgram(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: token KEYFILE KID SUB [CLAIM=JSON...]")
	}
	key, err := signingKey(args[0], args[1])
	if err != nil {
		return err
	}
	now := time.Now().Unix()
	claims := map[string]any{
		"iss": "librechat", "aud": "codeapi", "sub": args[2], "iat": now, "nbf": now, "exp": now + 300, "jti": rand.Text(),
		"tenant_id": "acme", "role": "USER", "principal_source": "librechat_jwt", "auth_context_hash": "h",
	}
	for _, c := range args[3:] {
		name, text, _ := strings.Cut(c, "=")
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
		claims[name] = v
	}
	header, err := json.Marshal(map[string]string{"alg": "EdDSA", "typ": "JWT", "kid": args[1]})
	if err != nil {
		return err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return err
	}
	enc := base64.RawURLEncoding
	signed := enc.EncodeToString(header) + "." + enc.EncodeToString(payload)
	fmt.Println(signed + "." + enc.EncodeToString(ed25519.Sign(key, []byte(signed))))
	return nil
}

func signingKey(file, kid string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err == nil {
		block, _ := pem.Decode(text)
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		return key.(ed25519.PrivateKey), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	set := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":%q,"x":%q}]}`, kid, base64.RawURLEncoding.EncodeToString(public))
	return key, errors.Join(
		os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600),
		os.WriteFile(file+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki}), 0o644),
		os.WriteFile(file+".json", []byte(set), 0o644))
}

// keyserver FILE URLFILE answers each GET with what is in FILE then, or 503 when it is not
// there, and writes its URL to URLFILE. It ends on an interrupt.
func keyServerProgram(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: keyserver FILE URLFILE")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		set, err := os.ReadFile(args[0])
		if err != nil {
			http.Error(w, "no keys", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(set)
	})}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := os.WriteFile(args[1], []byte("http://"+ln.Addr().String()+"/keys.json\n"), 0o600); err != nil {
		return err
	}
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
