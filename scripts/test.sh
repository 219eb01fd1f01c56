#!/usr/bin/env bash
# test.sh [ARGS] runs every test with the race detector. WRIT_REQUIRE names what
# must not be missing: a test that needs one of these fails without it, where it
# would else be skipped. ARGS go to go test, as in: scripts/test.sh -run FS01 ./sandbox
set -euo pipefail
cd "$(dirname "$0")/.."

# Whether a memory cgroup of our own can be made, on v1 or v2.
cgroups() {
	[ "$(id -u)" -eq 0 ] || return 1
	[ ! -w /sys/fs/cgroup/memory/cgroup.procs ] || return 0
	grep -qw memory /sys/fs/cgroup/cgroup.controllers 2>/dev/null && [ -w /sys/fs/cgroup/cgroup.procs ]
}

if [ -z "${WRIT_REQUIRE+set}" ]; then
	WRIT_REQUIRE=bwrap,userns,python,node,postgres,git
	WRIT_REQUIRE+=,bash,c,cpp,java,php,rust,d,fortran,r,python3-matplotlib # of the code interpreter
	case $(uname -m) in x86_64 | aarch64)
		WRIT_REQUIRE+=,mcpclients,librechat # they bring a Node.js for these
		WRIT_REQUIRE+=,bun
		;;
	esac
	if cgroups; then
		WRIT_REQUIRE+=,cgroup
	fi
	for go in /usr/local/go/bin/go /usr/bin/go; do
		if [[ $(readlink -e $go) == /usr/* ]]; then # boxes see it, too
			WRIT_REQUIRE+=,go
			break
		fi
	done
fi
export WRIT_REQUIRE
echo "writ: tests must find: ${WRIT_REQUIRE:-nothing}" >&2

if [ $# -eq 0 ]; then
	set -- ./...
fi
# SQLite, a program in C made Go, takes up to five times as long when the race detector
# watches its own reads and writes, too: it watches what calls it. Only of a package
# without generic code can it be taken off: others share what they make of that.
exec env CGO_ENABLED=1 go test -race '-gcflags=modernc.org/sqlite/lib=-race=false' -timeout 30m "$@"
