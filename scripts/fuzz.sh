#!/usr/bin/env bash
# fuzz.sh TIME runs each fuzz test of the module for TIME. What makes one fail is
# kept under that package's testdata/fuzz: commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:-30s}
grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r folder; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$folder"/*_test.go | cut -d' ' -f2 | while read -r name; do
		echo "writ: fuzzing $folder $name for $time" >&2
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$folder" </dev/null
	done
done
