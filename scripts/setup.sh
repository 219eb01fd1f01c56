#!/usr/bin/env bash
# setup.sh run|bench|test installs what this machine lacks: "run" for running writ and
# its demo, "bench" for measuring it, "test" for the tests as well. It does nothing when
# all is there.
set -euo pipefail

for_what=${1:-test}

# have TOOL says whether the machine has it where writ looks for it: a sandbox
# sees /usr, so an interpreter elsewhere is of no use.
have() {
	case $1 in
	bubblewrap) command -v bwrap >/dev/null ;;
	python3) [ -x /usr/bin/python3 ] ;;
	nodejs) [ -x /usr/bin/node ] || [ -x /usr/local/bin/node ] ;;
	ca-certificates) [ -e /etc/ssl/certs/ca-certificates.crt ] ;;
	git | make | gcc | npm) command -v "$1" >/dev/null ;;
	g++ | rustc | gdc | gfortran) [ -x "/usr/bin/$1" ] ;;
	default-jdk-headless) [ -x /usr/bin/java ] && [ -x /usr/bin/javac ] ;; # a JRE compiles nothing
	php-cli) [ -x /usr/bin/php ] ;;
	r-base-core) [ -x /usr/bin/Rscript ] ;;
	python3-matplotlib) /usr/bin/python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec("matplotlib") is None)' 2>/dev/null ;;
	libc6-dev) [ -e /usr/include/stdio.h ] ;;
	postgresql) command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null ;;
	esac
}

need=(bubblewrap python3 nodejs ca-certificates)
if [ "$for_what" != run ]; then
	need+=(npm)
fi
if [ "$for_what" = test ]; then
	# gcc and libc6-dev: the race detector. postgresql: the store runs on it too.
	need+=(git make gcc libc6-dev postgresql)
	# What the code interpreter runs.
	need+=(g++ default-jdk-headless php-cli rustc gdc gfortran r-base-core python3-matplotlib)
fi

# Programs of npm, which bring a Node.js of their own.
clients() {
	if [ "$for_what" != run ]; then
		"$(dirname "$0")/mcpclients.sh"
	fi
	if [ "$for_what" = test ]; then
		"$(dirname "$0")/librechat.sh"
		bun
		go_cache
	fi
}

# Bun, where boxes see it. There is none for other machines.
bun() {
	case $(uname -m) in x86_64 | aarch64) ;; *) return ;; esac
	if [ -x /usr/local/bin/bun ] || [ -x /usr/bin/bun ]; then
		return
	fi
	local as=() said
	[ "$(id -u)" -eq 0 ] || as=(sudo)
	echo "writ: installing Bun with npm" >&2
	if ! said=$("${as[@]}" npm install -g --prefix /usr/local bun@1.4.5 2>&1 && /usr/local/bin/bun --version 2>&1); then
		echo "$said" | tail -n 30 >&2
		echo "writ: npm installed no Bun that runs here" >&2
		exit 1
	fi
}

# What most programs in Go use of its library, compiled once for all runs, as writ doctor
# advises; the rest is compiled in the run that needs it.
go_cache() {
	local cache=/usr/local/share/writ/go-build go=/usr/local/go/bin/go as=()
	[ -x "$go" ] || go=/usr/bin/go
	if [ -d "$cache" ] || [ ! -x "$go" ]; then
		return
	fi
	[ "$(id -u)" -eq 0 ] || as=(sudo)
	"${as[@]}" env HOME=/root CGO_ENABLED=0 GOENV=off GOFLAGS=-buildvcs=false GOTOOLCHAIN=local GOCACHE="$cache" "$go" build bufio fmt io os sort strings time
}

missing=()
for package in "${need[@]}"; do
	have "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
	clients
	exit 0
fi

if ! command -v apt-get >/dev/null; then
	echo "writ: this machine lacks: ${missing[*]} (names of Debian's packages)." >&2
	echo "writ: only Debian and Ubuntu are set up by this script; install them with your package manager and try again." >&2
	exit 1
fi
root=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "writ: this machine lacks: ${missing[*]}. As root: apt-get update && apt-get install ${missing[*]}" >&2
		exit 1
	fi
	root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# What apt says is of interest only when it fails.
apt() {
	if ! "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" </dev/null >"$log" 2>&1; then
		tail -n 30 "$log" >&2
		echo "writ: apt-get $1 failed" >&2
		exit 1
	fi
}

echo "writ: installing with apt-get: ${missing[*]}" >&2
case " ${missing[*]} " in *" postgresql "*)
	echo "writ: the tests start a PostgreSQL of their own; the one that Debian starts with the package is not used." >&2
	;;
esac
apt update
apt install -y --no-install-recommends "${missing[@]}"

for package in "${missing[@]}"; do
	if ! have "$package"; then
		echo "writ: $package was installed and is still not where writ looks for it" >&2
		exit 1
	fi
done
clients
