package files

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"writ/patch"
)

// state is what is at a name: a regular file's version and permission bits, nothing,
// or something odd: no regular file, or one that cannot be read.
type state struct {
	version string // patch.Absent for nothing; empty for something odd
	mode    fs.FileMode
	st      unix.Stat_t // of a regular file that was read
}

func (s state) absent() bool { return s.version == patch.Absent }

// is reports whether s is a file, or none, of this version and mode.
func (s state) is(version string, mode fs.FileMode) bool {
	return s.version == version && (s.absent() || s.mode == mode)
}

// sameFile reports whether s and o are names of one file.
func (s state) sameFile(o state) bool {
	return s.st.Ino != 0 && s.st.Dev == o.st.Dev && s.st.Ino == o.st.Ino
}

// stateAt looks at name in the folder dir, which may be a path beneath it. It always
// reads the whole file.
func stateAt(ctx context.Context, dir int, name string) state {
	f, err := openFile(dir, name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return state{version: patch.Absent}
	}
	if err != nil {
		return state{}
	}
	defer f.close()
	for range maxReadTries {
		same, version, err := f.window(ctx, nil, nil, 0)
		if err != nil {
			break
		}
		if same {
			return state{version: version, mode: permOf(&f.st), st: f.st}
		}
	}
	return state{}
}
