#!/usr/bin/env bash
# run.sh [ARGS] builds writ and the bench, and prints its tables. ARGS go to the
# bench, as in: bench/run.sh -n 200
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/" ./cmd/writ ./bench
"$tmp/bench" -writ "$tmp/writ" "$@"
