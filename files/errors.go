package files

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"writ"
	"writ/patch"
)

// The codes of errors (spec/02 §4 and §5.14) that this package makes itself. A patch
// that cannot be read or applied has the codes of package patch.
const (
	CodePathEscape      = "PATH_ESCAPE"
	CodeFileNotFound    = "FILE_NOT_FOUND"
	CodeNotDirectory    = "PATH_NOT_DIRECTORY"
	CodeSymlink         = "SYMLINK_REJECTED"
	CodeSpecialFile     = "SPECIAL_FILE_REJECTED"
	CodeOperationFailed = "FILE_OPERATION_FAILED"
	CodeOutputLimit     = "OUTPUT_LIMIT"
	CodeUnauthorized    = "UNAUTHORIZED"
	CodeVersionConflict = "VERSION_CONFLICT"
	CodeInvalidPatch    = "INVALID_PATCH"
	CodeNoOperation     = "OPERATION_NOT_FOUND"
)

// fault makes the one kind of error that leaves this package for somebody to act on.
func fault(code, format string, args ...any) *writ.Error {
	return &writ.Error{Kind: kindOf(code), Code: code, Msg: fmt.Sprintf(format, args...)}
}

func kindOf(code string) writ.Kind {
	switch code {
	case CodeFileNotFound, CodeNoOperation:
		return writ.NotFound
	case CodePathEscape, CodeSymlink, CodeSpecialFile, CodeUnauthorized:
		return writ.Denied
	case CodeNotDirectory, CodeVersionConflict:
		return writ.Conflict
	case CodeOutputLimit, CodeInvalidPatch:
		return writ.Invalid
	}
	return writ.Unavailable
}

// systemFault is what a system call answered about a path, as the contract has it
// (spec/02 §4). It names the path as it was asked for, never one of the host.
func systemFault(op, name string, err error) error {
	e := fault(systemCode(err), "%s %s: %s", op, quoted(name), systemText(err))
	e.Err = err
	return e
}

func systemCode(err error) string {
	errno, ok := errors.AsType[unix.Errno](err)
	if !ok {
		return CodeOperationFailed
	}
	switch errno {
	case unix.ENOENT:
		return CodeFileNotFound
	case unix.ENOTDIR:
		return CodeNotDirectory
	case unix.ELOOP:
		return CodeSymlink
	case unix.EXDEV:
		return CodePathEscape
	case unix.ENXIO, unix.ENODEV: // a socket, a device that nothing serves
		return CodeSpecialFile
	}
	return CodeOperationFailed
}

func systemText(err error) string {
	switch systemCode(err) {
	case CodeFileNotFound:
		return "there is no such file"
	case CodeNotDirectory:
		return "a name on the way is a file, not a folder"
	case CodeSymlink:
		return "it is a symbolic link, or leads through one: links are not followed, name the file itself"
	case CodePathEscape:
		return "it leads out of the workspace"
	case CodeSpecialFile:
		return "it is not a regular file"
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return "the server has no permission"
	}
	return err.Error()
}

// withLine is an error of Tree.Read that came back through package patch, with the line
// of the patch in its message. Others it gives back.
func withLine(err error) error {
	if _, ok := errors.AsType[*patch.Error](err); ok {
		return err
	}
	if e, ok := errors.AsType[*writ.Error](err); ok {
		return &writ.Error{Kind: e.Kind, Code: e.Code, Msg: err.Error(), Err: err}
	}
	return err
}

const maxQuotedBytes = 200

// quoted is a name for a message: what does not print is escaped, and what is long
// is cut.
func quoted(name string) string {
	if len(name) > maxQuotedBytes {
		return strconv.Quote(name[:maxQuotedBytes]) + "…"
	}
	return strconv.Quote(name)
}
