#!/usr/bin/env bash
# librechat.sh installs the clients of internal/librechat, which its tests run, as their
# lock files have them. It does nothing for those that are there. The Node.js that runs
# them comes with scripts/mcpclients.sh.
set -euo pipefail
cd "$(dirname "$0")/../internal/librechat/testdata"

case $(uname -m) in x86_64 | aarch64) ;; *)
	echo "writ: there is no Node.js for LibreChat's clients on $(uname -m); tests that need them are skipped." >&2
	exit 0
	;;
esac

# install FOLDER. What npm says is of interest only when it fails. No package may run
# anything, and none that a client only can be used with is fetched.
install() (
	cd "$1"
	want=$(sha256sum package-lock.json)
	if [ "$(cat node_modules/.installed 2>/dev/null)" = "$want" ]; then
		exit 0
	fi
	echo "writ: installing LibreChat's client ${1#agents-} for the tests with npm" >&2
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	if ! npm ci --ignore-scripts --legacy-peer-deps --no-audit --no-fund >"$log" 2>&1; then
		tail -n 30 "$log" >&2
		echo "writ: npm ci of $1 failed" >&2
		exit 1
	fi
	echo "$want" >node_modules/.installed
)

# At once: most of it is waiting.
jobs=()
for folder in agents-*/; do
	install "${folder%/}" &
	jobs+=($!)
done
failed=0
for job in "${jobs[@]}"; do
	wait "$job" || failed=1
done
exit "$failed"
