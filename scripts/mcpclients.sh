#!/usr/bin/env bash
# mcpclients.sh installs the programs of internal/mcpclients, which tests and the
# benchmark run, as its lock file has them. It does nothing when they are there.
set -euo pipefail
cd "$(dirname "$0")/../internal/mcpclients"

want=$(sha256sum package-lock.json)
if [ "$(cat node_modules/.installed 2>/dev/null)" = "$want" ]; then
	exit 0
fi
case $(uname -m) in x86_64 | aarch64) ;; *)
	echo "writ: the MCP clients bring no Node.js for $(uname -m); tests that need them are skipped." >&2
	exit 0
	;;
esac
echo "writ: installing MCP clients and Node.js for the tests with npm" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# What npm says is of interest only when it fails. npm 9, which Debian 12 has, links the
# programs only when it is told to rebuild.
for step in ci rebuild; do
	if ! npm "$step" >"$log" 2>&1; then
		tail -n 30 "$log" >&2
		echo "writ: npm $step failed" >&2
		exit 1
	fi
done
if ! node_modules/.bin/node --version >"$log" 2>&1; then # npm passes over what is optional
	cat "$log" >&2
	echo "writ: npm installed no Node.js that runs here" >&2
	exit 1
fi
echo "$want" >node_modules/.installed
