package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"writ"
	"writ/lang"
	"writ/sandbox"
)

// collectTime is how long keeping the files of one run may take.
const collectTime = 30 * time.Second

// maxDroppedPath bounds what is told of the path of a file that is dropped.
const maxDroppedPath = 1024

// history is the file in which programmatic tool calls keep their own.
const history = "_ptc_history.json"

// given is an input as a collection compares it.
type given struct {
	writ.FileInput
	state  writ.OutputState // as it was found; empty until then
	folder bool             // it stands for an empty folder
}

func (g given) as(s writ.OutputState) writ.OutputFile {
	return writ.OutputFile{Path: g.Path, Digest: g.Digest, Size: g.Size, State: s, Exec: g.Exec, Link: g.Link}
}

// inputs are those of the job, by path.
func (j job) inputs() map[string]*given {
	all := map[string]*given{}
	for _, in := range j.spec.Inputs {
		all[in.Path] = &given{FileInput: writ.FileInput{Path: in.Path, Digest: writ.DigestOf(in.Content), Size: int64(len(in.Content)), Exec: in.Exec}}
	}
	for _, f := range j.spec.Files {
		_, folder := keptFolder(f.Path)
		all[f.Path] = &given{FileInput: f, folder: folder}
	}
	return all
}

// collect fills in the files that the run left, as the contract of writ.Result and
// writ.Exchange has it. When collectTime is over no more are kept, and those that are not
// are dropped; which inputs changed is found out all the same. It ends when ctx does.
//
// First it goes through all: what is new is kept at once, and of inputs is found out
// whether they changed. Those that did are kept in a second round, since they come after
// the new.
func (t *turn) collect(ctx context.Context, box sandbox.Box, res *writ.Result) {
	timed, stop := context.WithTimeoutCause(ctx, collectTime, errCollectTime)
	defer stop()
	c := &collection{
		ctx: ctx, timed: timed, bounds: *t.spec.Collect, keep: t.x.Keep, res: res,
		inputs: t.inputs(), entry: t.row.File, code: writ.DigestOf([]byte(t.spec.Code)), folders: map[string]bool{},
	}
	for p := range c.inputs {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			c.folders[dir] = true
		}
	}
	err := box.Files(ctx, lang.Data, c.first)
	if err == nil {
		c.leave("")
	}
	if err == nil && c.changed > 0 {
		err = box.Files(ctx, lang.Data, c.second)
	}
	for _, g := range c.inputs {
		if g.state == writ.OutputSame {
			res.Files = append(res.Files, g.as(writ.OutputSame))
		}
	}
	sortFiles(res.Files)
	if err != nil && ctx.Err() == nil {
		c.drop(".", writ.DropUnreadable, "the files of the run could not be read")
		t.opt.Log.Warn("collecting the files of a run failed", "err", err)
	}
}

var errCollectTime = fmt.Errorf("keeping the files of the run took longer than %v", collectTime)

// sortFiles puts them in the order of writ.Result.Files.
func sortFiles(files []writ.OutputFile) {
	rank := map[writ.OutputState]int{writ.OutputNew: 0, writ.OutputChanged: 1, writ.OutputSame: 2}
	slices.SortFunc(files, func(a, b writ.OutputFile) int {
		return cmp.Or(cmp.Compare(rank[a.State], rank[b.State]), strings.Compare(a.Path, b.Path))
	})
}

// collection is one run's, under way.
type collection struct {
	ctx     context.Context // the run's
	timed   context.Context // ends when nothing may be kept any more
	bounds  writ.Collect
	keep    func(context.Context, writ.OutputFile, io.Reader) error
	res     *writ.Result
	inputs  map[string]*given
	folders map[string]bool // in which an input lies
	entry   string
	code    writ.Digest

	// bare is a folder in which nothing was found yet but what nobody asked for; empty for
	// none.
	bare string
	last string // the path that came last and counts

	kept    int64 // files that are new or changed, and folders
	bytes   int64 // of them
	changed int   // inputs that are to be kept in the second round
}

// drop counts a file that is not kept and names it. Where there are too many to be named,
// those of a kind that nobody asked for give way.
func (c *collection) drop(p string, class writ.DropClass, why string) {
	c.res.DroppedFiles++
	at := len(c.res.Dropped)
	if at < writ.MaxDropped {
		c.res.Dropped = append(c.res.Dropped, writ.DroppedFile{})
	} else if at = slices.IndexFunc(c.res.Dropped, func(d writ.DroppedFile) bool { return d.Class == writ.DropKind }); at < 0 || class == writ.DropKind {
		return
	}
	if len(p) > maxDroppedPath {
		p = p[:maxDroppedPath] + "…"
	}
	c.res.Dropped[at] = writ.DroppedFile{Path: strings.ToValidUTF8(p, "\uFFFD"), Why: why, Class: class}
}

// leave is told the path of what comes next, and keeps the folder that is over then as an
// empty one: what is in it is not kept (spec/03 §8).
func (c *collection) leave(next string) {
	dir := c.bare
	if dir == "" || strings.HasPrefix(next, dir+"/") {
		return
	}
	c.last, c.bare = dir+"/"+writ.KeepName, ""
	c.empty(dir)
}

// empty keeps a folder with nothing in it, unless an input stands for it, or is read-only
// and had its place.
func (c *collection) empty(dir string) {
	p := dir + "/" + writ.KeepName
	if g := c.inputs[p]; g != nil && g.folder {
		g.state = writ.OutputSame
		return
	}
	for at := dir; at != "."; at = path.Dir(at) {
		if g := c.inputs[at]; g != nil && g.ReadOnly {
			g.state = writ.OutputSame
			return
		}
	}
	c.save(writ.OutputFile{Path: p, State: writ.OutputNew}, func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("")), nil
	})
}

// first keeps e if it is new, and compares it if it is an input.
func (c *collection) first(e sandbox.Entry) error {
	if e.Kind == sandbox.EntryLink && !c.bounds.Links {
		e.Kind = sandbox.EntryOther
	}
	c.leave(e.Path)
	if at := c.cache(e); at != "" && c.inputs[e.Path] == nil {
		if dir := path.Dir(at); dir != "." && !c.seen(dir) {
			c.bare = dir
		}
		return nil
	}
	c.last, c.bare = e.Path, ""
	for dir := path.Dir(e.Path); dir != "."; dir = path.Dir(dir) {
		if g := c.inputs[dir]; g != nil && g.ReadOnly {
			g.state = writ.OutputSame // something of its name is there
			c.drop(e.Path, writ.DropPath, "it lies in place of a file that is read-only")
			return nil
		}
	}
	p := e.Path
	if e.Kind == sandbox.EntryFolder {
		if g := c.inputs[p]; g != nil && g.ReadOnly {
			g.state = writ.OutputSame
			return nil
		}
		p += "/" + writ.KeepName
	}
	g := c.inputs[p]
	switch {
	case g != nil && g.ReadOnly, g != nil && g.folder && e.Kind == sandbox.EntryFolder:
		g.state = writ.OutputSame
	case g == nil && p == history:
	case e.Kind == sandbox.EntryUnreadable:
		c.drop(p, writ.DropUnreadable, "it cannot be read, or lies too deep")
	case e.Kind == sandbox.EntryOther:
		c.drop(p, writ.DropKind, "it is no regular file")
	case e.Kind == sandbox.EntryFolder:
		c.empty(e.Path)
	case g != nil:
		c.compare(g, e)
	default:
		if p == c.entry && c.isEntry(e) {
			return nil
		}
		c.save(output(e, writ.OutputNew), e.Open)
	}
	return nil
}

// output is e, a file or a symlink, as it is kept.
func output(e sandbox.Entry, s writ.OutputState) writ.OutputFile {
	link := e.Kind == sandbox.EntryLink
	return writ.OutputFile{Path: e.Path, Size: e.Size, State: s, Exec: !link && e.Mode&0o100 != 0, Link: link}
}

// second keeps the inputs that changed.
func (c *collection) second(e sandbox.Entry) error {
	if g := c.inputs[e.Path]; g != nil && g.state == writ.OutputChanged {
		c.save(output(e, writ.OutputChanged), e.Open)
	}
	return nil
}

// seen reports whether something that counts lies in dir, of what came so far.
func (c *collection) seen(dir string) bool { return strings.HasPrefix(c.last, dir+"/") }

// cache is the outermost folder without inputs in which e lies and that tools have for
// themselves, such as one that begins with a dot (spec/03 §8); empty for none.
func (c *collection) cache(e sandbox.Entry) (at string) {
	dir := path.Dir(e.Path)
	if e.Kind == sandbox.EntryFolder || e.Kind == sandbox.EntryUnreadable {
		dir = e.Path
	}
	for ; dir != "." && !c.bounds.Hidden; dir = path.Dir(dir) {
		if writ.ForTools(path.Base(dir)) && !c.folders[dir] {
			at = dir
		}
	}
	return at
}

// isEntry reports whether e is the code as it was.
func (c *collection) isEntry(e sandbox.Entry) bool {
	if e.Kind != sandbox.EntryFile {
		return false
	}
	digest, err := c.digest(e)
	return err == nil && digest == c.code
}

// compare finds out what became of an input.
func (c *collection) compare(g *given, e sandbox.Entry) {
	if e.Size == g.Size && (e.Kind == sandbox.EntryLink) == g.Link {
		switch digest, err := c.digest(e); {
		case err != nil:
			c.drop(g.Path, writ.DropUnreadable, why(err))
			return
		case digest == g.Digest:
			g.state, g.Exec = writ.OutputSame, output(e, writ.OutputSame).Exec // its bytes alone count as a change
			return
		}
	}
	g.state = writ.OutputChanged
	c.changed++
}

func (c *collection) digest(e sandbox.Entry) (writ.Digest, error) {
	f, err := e.Open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, &untilDone{c.ctx, f}); err != nil {
		return "", err
	}
	return writ.Digest(hex.EncodeToString(sum.Sum(nil))), nil
}

// save keeps f, or drops it.
func (c *collection) save(f writ.OutputFile, open func() (io.ReadCloser, error)) {
	if class, reason := c.refuses(f); class != "" {
		c.drop(f.Path, class, reason)
		return
	}
	if err := c.give(&f, open); err != nil {
		c.drop(f.Path, writ.DropUnreadable, why(err))
		return
	}
	c.kept++
	c.bytes += f.Size
	c.res.Files = append(c.res.Files, f)
}

// refuses is why f is not kept, empty when it is.
func (c *collection) refuses(f writ.OutputFile) (writ.DropClass, string) {
	class, reason := c.bounds.Drops(f.Path)
	switch {
	case writ.ValidPath(f.Path) != nil:
		return writ.DropPath, "its path cannot be that of a file that is kept"
	case class != "":
		return class, reason
	case f.Size > 0 && strings.HasSuffix(f.Path, "/"+writ.KeepName):
		return writ.DropPath, "its name stands for an empty folder"
	case f.Size > c.bounds.FileBytes:
		return writ.DropSize, fmt.Sprintf("it has %d bytes, the most is %d", f.Size, c.bounds.FileBytes)
	case c.kept >= c.bounds.Files:
		return writ.DropFiles, fmt.Sprintf("more than %d files are new or changed", c.bounds.Files)
	case c.bytes+f.Size > c.bounds.TotalBytes:
		return writ.DropFiles, fmt.Sprintf("what is new or changed has more than %d bytes together", c.bounds.TotalBytes)
	}
	return "", ""
}

// give has Keep read f to its end, and sets its digest.
func (c *collection) give(f *writ.OutputFile, open func() (io.ReadCloser, error)) error {
	if err := context.Cause(c.timed); err != nil {
		return err
	}
	body, err := open()
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha256.New()
	count := &counter{r: io.TeeReader(&untilDone{c.timed, body}, sum)}
	if c.keep == nil {
		_, err = io.Copy(io.Discard, count)
	} else {
		err = c.keep(c.timed, *f, count)
	}
	switch {
	case err != nil:
		return err
	case count.n != f.Size:
		return fmt.Errorf("%d bytes of %q were kept of %d", count.n, f.Path, f.Size)
	}
	f.Digest = writ.Digest(hex.EncodeToString(sum.Sum(nil)))
	return nil
}

// why is what may be said of a file that could not be kept.
func why(err error) string {
	if e, ok := errors.AsType[*writ.Error](err); ok && e.Kind != writ.Internal && e.Msg != "" {
		return "it could not be kept: " + e.Msg
	}
	if errors.Is(err, errCollectTime) {
		return errCollectTime.Error()
	}
	return "it could not be kept"
}

// untilDone reads until ctx is done.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(b []byte) (int, error) {
	if err := context.Cause(u.ctx); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}
