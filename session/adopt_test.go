package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
)

// kept puts bytes as a run does, and describes them.
func (d *desk) kept(t testing.TB, name, body string) Kept {
	t.Helper()
	digest, n, err := d.Service.blobs.Put(context.Background(), strings.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	return Kept{Name: name, Type: TypeOf(name), Digest: digest, Size: n}
}

// age lets all bytes that are kept be of long ago.
func (d *desk) age(t testing.TB) {
	t.Helper()
	old := time.Now().Add(-d.opt.Grace - time.Hour)
	for _, name := range d.blobNames(t) {
		if err := os.Chtimes(filepath.Join(d.dir, "blobs", name), old, old); err != nil {
			t.Error(err)
		}
	}
}

// TestLC19_LC24_AdoptedOutputs are there at once, with their types, their bytes and where
// they came from, also when a pass removes what nobody names.
func TestLC19_LC24_AdoptedOutputs(t *testing.T) {
	d, ada, ctx := newDesk(t, Defaults()), user("ada"), context.Background()
	s := d.create(t, ada, own)
	from := writ.ObjectRef{ID: writ.NewObjectID(), Session: writ.NewSessionID()}
	files := []Kept{
		d.kept(t, "out/№ 1.csv", "a,b"), d.kept(t, "twin.csv", "a,b"), d.kept(t, "zero.txt", ""),
		{Name: "empty/.dirkeep", Type: TypeOf(".dirkeep"), Digest: writ.DigestOf(nil)},
	}
	files[1].ModifiedFrom = &from
	d.age(t) // a run that took long; nothing names them yet
	got, err := d.Adopt(ctx, ada, own, s, files)
	if err != nil {
		t.Fatal(err)
	}
	d.retain(t, false)
	list, err := d.List(ctx, ada, own, s)
	if err != nil || len(list) != 4 || len(got) != 4 {
		t.Fatalf("listed %v, %v, adopted %v", list, err, got)
	}
	for i, want := range []struct{ name, kind, body string }{
		{"out/№ 1.csv", "text/csv", "a,b"}, {"twin.csv", "text/csv", "a,b"}, {"zero.txt", "text/plain", ""}, {"empty/.dirkeep", anyType, ""},
	} {
		o := got[i]
		body, err := d.bytesOf(ada, own, s, o.ID)
		if o.Name != want.name || o.Type != want.kind || body != want.body || err != nil || (o.ModifiedFrom != nil) != (i == 1) {
			t.Errorf("object %+v: %q, %v, want %v", o, body, err, want)
		}
		if !slices.ContainsFunc(list, func(l writ.Object) bool { return l.ID == o.ID && l.Name == o.Name && l.SHA256 == o.SHA256 }) {
			t.Errorf("%v is not listed in %v", o, list)
		}
	}
	if total := testTotals(t, d); total != (writ.SessionTotals{Sessions: 1, Objects: 4, Bytes: 6}) {
		t.Errorf("totals %+v", total)
	}

	folders, err := d.ListKeep(ctx, ada, own, s)
	if err != nil || len(folders) != 1 || folders[0].Name != "empty/.dirkeep" {
		t.Errorf("empty folders are %v, %v", folders, err)
	}
	d.put(t, ada, own, s, text(".dirkeep", "")) // of the folder itself, which is there
	d.put(t, ada, own, s, text("x.dirkeep", ""))
	if folders, err = d.ListKeep(ctx, ada, own, s); err != nil || len(folders) != 1 {
		t.Errorf("empty folders are %v, %v", folders, err)
	}
	if _, err := d.ListKeep(ctx, user("bob"), own, s); writ.KindOf(err) != writ.NotFound {
		t.Errorf("another's empty folders: %v", err)
	}
}

// TestIO04_IO05_AdoptRefusesTheWholeCall: what is refused leaves nothing.
func TestIO04_IO05_AdoptRefusesTheWholeCall(t *testing.T) {
	opt := Defaults()
	opt.Limits = Limits{SessionObjects: 3, SessionBytes: 10, TenantSessions: 9, TenantBytes: 15, RuntimeFiles: 1, RuntimeBytes: 1}
	d, ada, ctx := newDesk(t, opt), user("ada"), context.Background()
	s, other := d.create(t, ada, own), d.create(t, ada, own)
	d.put(t, ada, own, other, text("other", "1234567"))
	ok := d.kept(t, "ok", "12345")
	named := func(name string) Kept { k := ok; k.Name = name; return k }
	gone := Kept{Name: "gone", Digest: writ.DigestOf([]byte("xyz")), Size: 3}
	wrong := ok
	wrong.Size = 4
	for name, c := range map[string]struct {
		files []Kept
		kind  writ.Kind
		says  string
	}{
		"a name that leads out":    {[]Kept{ok, named("../../../../app/client/dist/poc.txt")}, writ.Invalid, "must not contain empty, current, or parent path segments"},
		"a name with a line break": {[]Kept{named("a\nb"), ok}, writ.Invalid, `"a\nb" contains invalid path characters`},
		"no name":                  {[]Kept{named("")}, writ.Invalid, "must not be empty"},
		"four files":               {[]Kept{d.kept(t, "a", ""), d.kept(t, "b", ""), d.kept(t, "c", ""), d.kept(t, "d", "")}, writ.Exhausted, "the session holds 0 files, of 3"},
		"11 bytes":                 {[]Kept{ok, d.kept(t, "b", "123456")}, writ.Exhausted, "there is room for 8 more bytes"},
		"9 bytes in a full tenant": {[]Kept{ok, d.kept(t, "b", "1234")}, writ.Exhausted, "there is room for 8 more bytes"},
		"bytes that are not there": {[]Kept{ok, gone}, writ.Internal, "internal error"},
		"another size":             {[]Kept{wrong}, writ.Internal, "internal error"},
		"a digest that is none":    {[]Kept{{Name: "x", Digest: "../x"}}, writ.Internal, "internal error"},
	} {
		if _, err := d.Adopt(ctx, ada, own, s, c.files); writ.KindOf(err) != c.kind || !strings.Contains(writ.Message(err), c.says) {
			t.Errorf("%s: %v (%q), want %v, %q", name, err, writ.Message(err), c.kind, c.says)
		}
	}
	if _, err := d.Adopt(ctx, user("bob"), own, s, []Kept{ok}); writ.KindOf(err) != writ.NotFound {
		t.Errorf("another's session: %v", err)
	}
	if os, err := d.Adopt(ctx, user("bob"), own, s, nil); writ.KindOf(err) != writ.NotFound {
		t.Errorf("nothing in another's session: %v, %v", os, err)
	}
	if list, err := d.List(ctx, ada, own, s); len(list) != 0 || err != nil {
		t.Errorf("left are %v, %v", list, err)
	}
	if os, err := d.Adopt(ctx, ada, own, s, nil); len(os) != 0 || err != nil {
		t.Errorf("nothing: %v, %v", os, err)
	}
	if _, err := d.Adopt(ctx, ada, own, s, []Kept{ok, d.kept(t, "b", "123")}); err != nil {
		t.Errorf("what just fits: %v", err)
	}
}

// TestScenario193_AdoptUnderSweeps adopts bytes while they are swept. Of those that are old
// and unnamed either there is no object, or it has its bytes; the others are there.
func TestScenario193_AdoptUnderSweeps(t *testing.T) {
	d, ada, ctx := newDesk(t, Defaults()), user("ada"), context.Background()
	stop := make(chan struct{})
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				d.retain(t, false)
			}
		}
	})
	for i := range 30 {
		s := d.create(t, ada, own)
		k := d.kept(t, "f", fmt.Sprint("text ", i))
		old := time.Now().Add(-d.opt.Grace - time.Hour)
		if i%2 == 0 {
			if err := os.Chtimes(filepath.Join(d.dir, "blobs", string(k.Digest)), old, old); err != nil {
				t.Fatal(err)
			}
		}
		got, err := d.Adopt(ctx, ada, own, s, []Kept{k})
		if err != nil {
			if i%2 != 0 {
				t.Error(err)
			}
			if list, err := d.List(ctx, ada, own, s); len(list) != 0 || err != nil {
				t.Errorf("refused, and there are %v, %v", list, err)
			}
			continue
		}
		if body, err := d.bytesOf(ada, own, s, got[0].ID); body != fmt.Sprint("text ", i) || err != nil {
			t.Errorf("an object without its bytes: %q, %v", body, err)
		}
	}
	close(stop)
	sweeps.Wait()
}

func TestTypeOf(t *testing.T) {
	for name, want := range map[string]string{
		"a.csv": "text/csv", "d/plot_1.PNG": "image/png", "x.jpg": "image/jpeg", "x.jpeg": "image/jpeg", "main.py": "text/x-python", "a.min.js": "text/javascript",
		"README.md": "text/markdown", "c.yaml": "application/yaml", "c.yml": "application/yaml", "t.parquet": "application/vnd.apache.parquet", "run.sh": "application/x-sh",
		"a.json": "application/json", "a.tar.gz": "application/gzip", ".config.json": "application/json",
		".env": anyType, "d/.gitignore": anyType, "Dockerfile": anyType, "csv": anyType, "a.": anyType, "": anyType, "x.weird": anyType, "d.csv/x": anyType,
	} {
		if got := TypeOf(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	// The table of the contract's reference: clients choose by these types what to show.
	for kind, names := range map[string]string{
		"image/png": "png", "image/jpeg": "jpg jpeg", "image/gif": "gif", "image/webp": "webp", "image/bmp": "bmp", "image/tiff": "tiff tif", "image/x-icon": "ico",
		"image/svg+xml": "svg", "image/heic": "heic", "image/heif": "heif", "image/avif": "avif", "application/pdf": "pdf", "application/msword": "doc",
		office + "wordprocessingml.document": "docx", "application/vnd.ms-excel": "xls", office + "spreadsheetml.sheet": "xlsx",
		"application/vnd.ms-powerpoint": "ppt", office + "presentationml.presentation": "pptx", "application/vnd.oasis.opendocument.text": "odt",
		"application/vnd.oasis.opendocument.spreadsheet": "ods", "application/vnd.oasis.opendocument.presentation": "odp",
		"text/plain": "txt log ini conf env", "text/markdown": "md", "text/x-rst": "rst", "text/csv": "csv", "text/tab-separated-values": "tsv", "text/html": "html htm",
		"text/css": "css", "application/xml": "xml", "application/json": "json", "application/x-ndjson": "jsonl", "application/yaml": "yaml yml", "application/toml": "toml",
		"text/javascript": "js mjs jsx", "text/x-typescript": "ts tsx", "text/x-python": "py", "text/x-ruby": "rb", "text/x-go": "go", "text/x-rust": "rs", "text/x-java": "java",
		"text/x-kotlin": "kt kts", "text/x-scala": "scala", "text/x-c": "c h", "text/x-c++": "cpp", "text/x-csharp": "cs", "application/x-php": "php", "text/x-perl": "pl",
		"text/x-r": "r", "text/x-lua": "lua", "text/x-swift": "swift", "application/x-sh": "sh", "application/x-powershell": "ps1", "application/sql": "sql",
		"application/zip": "zip", "application/x-tar": "tar", "application/gzip": "gz tgz", "application/x-bzip2": "bz2", "application/x-xz": "xz",
		"application/x-7z-compressed": "7z", "application/vnd.rar": "rar", "audio/mpeg": "mp3", "audio/wav": "wav", "audio/flac": "flac", "audio/ogg": "ogg",
		"audio/mp4": "m4a", "audio/aac": "aac", "video/mp4": "mp4", "video/x-matroska": "mkv", "video/quicktime": "mov", "video/x-msvideo": "avi", "video/webm": "webm",
		"font/ttf": "ttf", "font/otf": "otf", "font/woff": "woff", "font/woff2": "woff2", "application/vnd.apache.parquet": "parquet", "application/bson": "bson", "application/wasm": "wasm",
	} {
		for ext := range strings.FieldsSeq(names) {
			if got := TypeOf("x." + ext); got != kind {
				t.Errorf("%s: %s, want %s", ext, got, kind)
			}
		}
	}
	for ext, kind := range typeOfExtension {
		if cleanType(kind) != kind || ext != strings.ToLower(ext) {
			t.Errorf("%s: %q cannot be kept", ext, kind)
		}
	}
	for ext := range strings.FieldsSeq(`c cs cpp go java js kt kts lua php pl ps1 py r rb rs scala sh sql swift ts jsx tsx groovy css htm html less sass scss svg svelte vue
		adoc asciidoc md rst tex txt wiki csv bson json json5 jsonl parquet tsv xml yaml yml ics ical ifb icalendar conf env ini properties toml doc docx pdf ppt pptx xls xlsx
		odt ods odp rtf avif bmp gif ico jpeg jpg png tif tiff webp eot ttf woff woff2 7z bz2 gz gzip rar tar zip tf tfvars tfstate hcl nomad bat cmd deb log rpm vbs`) {
		if TypeOf("x."+ext) == anyType {
			t.Errorf("what the contract lets out has no type: %s", ext)
		}
	}
}
