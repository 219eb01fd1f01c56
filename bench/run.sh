#!/usr/bin/env bash
# run.sh [ARGS] builds writ and the bench, and prints its tables. ARGS go to the
# bench, as in: bench/run.sh -n 200, bench/run.sh -tools, or bench/run.sh -interpreter
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/" ./cmd/writ ./bench
clients=internal/mcpclients/node_modules
if [ -e "$clients/.installed" ]; then
	set -- -clients "$PWD/$clients/.bin" "$@"
else
	echo "bench: without scripts/mcpclients.sh there is no other server to compare with; the tools for files are not measured" >&2
fi
"$tmp/bench" -writ "$tmp/writ" "$@"
