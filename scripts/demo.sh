#!/usr/bin/env bash
# demo.sh shows writ at work in a folder of its own: a task that policy allows, one
# that it denies, one that a person must grant; then the audit trail, verified. It
# fails when any step ends otherwise than said, and leaves nothing behind. WRIT is
# the program; `make demo` builds it first.
set -euo pipefail

WRIT=${WRIT:-$(cd "$(dirname "$0")/.." && pwd)/build/writ}
[ -x "$WRIT" ] || {
	echo "writ: there is no $WRIT: make build" >&2
	exit 1
}
dir=$(mktemp -d "${TMPDIR:-/tmp}/writ-demo.XXXXXX")
server='' client=''

cleanup() {
	status=$?
	trap - EXIT INT TERM
	for pid in $client $server; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
	done
	if [ "$status" -ne 0 ]; then
		echo "writ: the demo failed; what the server said last:" >&2
		tail -n 20 "$dir/server.log" >&2 2>/dev/null || true
	fi
	rm -rf "$dir"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

step() { printf '\n== %s\n' "$*"; }
fail() {
	echo "writ: $*" >&2
	exit 1
}

# show COMMAND prints a command as one would type it, and runs it.
show() {
	local word line='$'
	for word in "$@"; do
		case $word in *' '*) word="'$word'" ;; esac
		line+=" $word"
	done
	echo "$line"
	"$@" 2>&1
}

# ends CODE COMMAND is show, for a command that must end with an exit code.
ends() {
	local want=$1 got=0
	shift
	show "$@" || got=$?
	[ "$got" -eq "$want" ] || fail "exit code $got, want $want"
	echo "(exit code $got)"
}

# until_true COMMAND repeats it for at most ten seconds.
until_true() {
	local i
	for ((i = 0; i < 200; i++)); do
		if "$@" >/dev/null 2>&1; then
			return 0
		fi
		kill -0 "$server" 2>/dev/null || fail "the server ended"
		sleep 0.05
	done
	fail "not in ten seconds: $*"
}

# Not for what runs in the background: its process would be a shell's.
writ() { "$WRIT" "$@"; }

unset WRIT_SERVER WRIT_KEY WRIT_KEY_FILE WRIT_LISTEN WRIT_IDENTITY
export WRIT_DATA=$dir/data
cd "$dir"
mkdir -m 700 data
(
	umask 077
	cat >data/config.yaml <<'EOF'
listen: 127.0.0.1:0
identities:
  - id: coder              # may ask for python; policy decides each run
    scopes: [python]
  - id: newcomer           # identities start without scopes, and can do nothing
EOF
)
cat >hello.py <<'EOF'
import os, socket
print("6 * 7 =", 6 * 7)
print("user", os.getuid(), "of host", socket.gethostname(), "in", os.getcwd())
print("what / has:", *sorted(os.listdir("/")))
try:
    socket.create_connection(("192.0.2.1", 80), timeout=5)
    print("network: reached")
except OSError as e:
    print("network:", e.strerror)
EOF
cat >long.py <<'EOF'
print("granted, and run once")
EOF

step "The server starts. This is all of its configuration:"
cat data/config.yaml
"$WRIT" serve 2>server.log &
server=$!
until_true grep '^sandbox: ' server.log
grep -E '^(policy|API|socket|operator key|sandbox): ' server.log

step "Allowed: the identity has the scope and no rule objects. The code is real, and boxed:"
ends 0 writ run --identity coder hello.py

step "Denied: this identity has no scope. Nothing is run:"
ends 121 writ run --identity newcomer hello.py

step "Held: 20 minutes is more than policy gives without a person (a second terminal asks):"
printf '$ writ run --identity coder --timeout 20m long.py\n'
"$WRIT" run --identity coder --timeout 20m long.py >held.out 2>held.err &
client=$!
until_true grep 'approvals grant' held.err
cat held.err
approval=$(sed -n 's/.*approvals grant //p' held.err)
[ ! -s held.out ] || fail "it ran before it was granted"

step "A person reads exactly what would run:"
ends 0 writ approvals list
show writ approvals show "$approval" >shown.txt || fail "the request cannot be read: $(cat shown.txt)"
cat shown.txt
shown=$(sed -n 's/^shown: //p' shown.txt)

step "and grants what they read, by its digest (on a terminal, grant shows it and asks):"
ends 0 writ approvals grant "$approval" --shown "$shown" --reason "it is short in truth"
got=0
wait "$client" || got=$?
client=''
[ "$got" -eq 0 ] || fail "the granted run ended with exit code $got: $(cat held.err)"
echo "and in the second terminal:"
cat held.out
[ "$(cat held.out)" = "granted, and run once" ] || fail "the granted run printed something else"

step "The audit trail: every step, under its task's id"
ends 0 writ audit list

step "It verifies: every event is what was signed"
ends 0 writ audit verify

step "The server stops"
kill "$server"
wait "$server" || fail "the server ended with exit code $?"
server=''
echo "done: one task allowed, one denied, one held and granted; its folder is removed"
