#!/usr/bin/env bash
# toolchain.sh VERSION prints the value for GOTOOLCHAIN: VERSION where it can be
# had, else "local", with a warning.
set -euo pipefail

want=$1
if ! command -v go >/dev/null; then
	echo "writ: Go is missing. Install Go 1.21 or newer (https://go.dev/dl/) and put it on PATH; it fetches $want by itself." >&2
	exit 1
fi
if GOTOOLCHAIN=$want go version >/dev/null 2>&1; then
	echo "$want"
	exit
fi
have=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || echo "an old Go")
echo "writ: $want cannot be had here; using $have. It must be 1.26 or newer, and may have known vulnerabilities that $want has not." >&2
echo local
