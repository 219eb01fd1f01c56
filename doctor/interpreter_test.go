package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ"
	"writ/lang"
)

func TestCodeInterpreter(t *testing.T) {
	on := func() *Interpreter {
		return &Interpreter{Listen: "127.0.0.1:3112", Auth: "jwt", Languages: lang.For(writ.RunInterpreter)}
	}
	t.Run("off", func(t *testing.T) {
		r := Examine(t.Context(), host(t, goodHost(), nil))
		for _, c := range r.Checks {
			if strings.Contains(c.Name, "code interpreter") || strings.Contains(c.Name, "environment") {
				t.Errorf("%+v of what is switched off", c)
			}
		}
	})
	t.Run("languages", func(t *testing.T) {
		h := host(t, with(goodHost(), map[string]string{"/usr/local/bin/bun": "-> ../lib/bun/bun", "/usr/local/lib/bun/bun": "#!"}), nil)
		h.Interpreter = on()
		r := Examine(t.Context(), h)
		sound(t, r)
		if c := find(t, r, "code interpreter"); !r.OK || c.Status != OK || c.Found != "http://127.0.0.1:3112/v1, auth jwt" {
			t.Errorf("got %+v", c)
		}
		for _, l := range h.Interpreter.Languages {
			c := find(t, r, "code interpreter "+string(l.Name))
			switch l.Name {
			case "python", "bash", "node", "javascript", "typescript":
				if c.Status != OK {
					t.Errorf("got %+v of what is there", c)
				}
			default:
				if c.Status != Warn || c.Mend != l.Install() {
					t.Errorf("got %+v, want a warning with %q", c, l.Install())
				}
			}
		}
		if c := find(t, r, "code interpreter rust"); !strings.Contains(c.Found, "no compiler at /usr/bin/rustc") {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("files apart", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		shared := filepath.Join(t.TempDir(), "shared", "blobs")
		for _, tt := range []struct {
			blobs string
			free  int64
			want  Check
		}{
			{shared, 8 << 30, Check{Status: OK, Found: shared + " will be made; 8.0 GiB free"}},
			{shared, 1 << 20, Check{Status: Warn, Found: "no file of its users can be kept", Mend: "interpreter.blobs"}},
			{file, 8 << 30, Check{Status: Fail, Found: file + " is not a folder", Mend: "interpreter.blobs"}},
		} {
			h := host(t, goodHost(), nil)
			h.Interpreter = on()
			h.Interpreter.Blobs = tt.blobs
			of := h.Free
			h.Free = func(at string) (int64, error) {
				if at == h.Data {
					return of(at)
				}
				return tt.free, nil
			}
			c := find(t, Examine(t.Context(), h), "code interpreter files")
			if c.Status != tt.want.Status || !strings.Contains(c.Found, tt.want.Found) || !strings.Contains(c.Mend, tt.want.Mend) {
				t.Errorf("got %+v, want %+v", c, tt.want)
			}
		}
	})
	t.Run("a library that is compiled anew", func(t *testing.T) {
		for _, there := range []bool{false, true} {
			files := map[string]string{"/usr/bin/go": "#!"}
			if there {
				files["/usr/local/share/writ/go-build/README"] = "text"
			}
			h := host(t, with(goodHost(), files), nil)
			h.Interpreter = on()
			c := find(t, Examine(t.Context(), h), "code interpreter go")
			if there && c.Status != OK || !there && (c.Status != Warn || !strings.HasSuffix(c.Mend, "GOCACHE=/usr/local/share/writ/go-build go build std")) {
				t.Errorf("there %v: got %+v", there, c)
			}
		}
	})
	for _, tt := range []struct {
		name, check string
		alter       func(*Interpreter)
		status      Status
		found, mend string
	}{
		{"no keys", "code interpreter", func(in *Interpreter) {
			in.Keys = &writ.Error{Kind: writ.Invalid, Msg: "folder /keys: not there", Err: errors.New("x")}
		}, Fail, "tokens cannot be checked: folder /keys: not there", "interpreter.jwt"},
		{"exposed", "code interpreter", func(in *Interpreter) { in.Auth, in.Exposed = "none", true }, Warn, "whoever does is who they say", "127.0.0.1"},
		{"applied", "environment", func(in *Interpreter) {
			in.Applied = []Variable{{"MAX_REQUESTS", "interpreter.rates.exec.most"}, {"LOG_LEVEL", "log.level"}}
		}, OK, "MAX_REQUESTS for interpreter.rates.exec.most; LOG_LEVEL for log.level", ""},
		{"unused", "environment without effect", func(in *Interpreter) {
			in.Unused = []Variable{{"REDIS_HOST", "there is no Redis"}, {"PTC_MODE", "not offered"}}
		}, Warn, "REDIS_HOST: there is no Redis; PTC_MODE: not offered", "unset REDIS_HOST PTC_MODE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := host(t, goodHost(), nil)
			h.Interpreter = on()
			tt.alter(h.Interpreter)
			r := Examine(t.Context(), h)
			sound(t, r)
			c := find(t, r, tt.check)
			if c.Status != tt.status || !strings.Contains(c.Found, tt.found) || !strings.Contains(c.Mend, tt.mend) || r.OK == (tt.status == Fail) {
				t.Errorf("got %+v (OK %v), want %s with %q and %q", c, r.OK, tt.status, tt.found, tt.mend)
			}
		})
	}
}
