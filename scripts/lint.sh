#!/usr/bin/env bash
# lint.sh checks format, vet and staticcheck, and fails on the first that finds
# something.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(find . -name '*.go' -not -path './build/*' -not -path '*/node_modules/*' -print0 | xargs -0 "$(go env GOROOT)/bin/gofmt" -l)
if [ -n "$unformatted" ]; then
	printf 'not formatted; run gofmt -w on:\n%s\n' "$unformatted" >&2
	exit 1
fi
go vet ./...
go tool staticcheck ./...
