#!/usr/bin/env bash
# vuln.sh looks for known vulnerabilities in what writ links, and in the Go that
# builds it. It exits non-zero when it finds some.
#
# The database is a module like any other, so this works where only Go modules can
# be had. It is pinned, so that a check can be repeated; VULNDB=latest takes today's.
set -euo pipefail
cd "$(dirname "$0")/.."

govulncheck=v1.9.0
vulndb=${VULNDB:-v0.0.0-20261105234957-e22db6528018}

cache=$PWD/build/vuln
mkdir -p "$cache"
if [ "$vulndb" = latest ]; then
	vulndb=$(go list -m -f '{{.Version}}' golang.org/x/vulndb@latest)
fi

# The tools are built by the Go that builds writ: govulncheck reads its standard library.
bin=$cache/$(go env GOVERSION)
if [ ! -x "$bin/govulncheck-$govulncheck" ]; then
	echo "writ: building govulncheck $govulncheck" >&2
	GOBIN=$bin GOFLAGS='' go install "golang.org/x/vuln/cmd/govulncheck@$govulncheck"
	mv "$bin/govulncheck" "$bin/govulncheck-$govulncheck"
fi

database=$cache/$vulndb
if [ ! -e "$database/index/db.json" ]; then
	echo "writ: building the database of $vulndb" >&2
	GOBIN=$bin GOFLAGS='' go install "golang.org/x/vulndb/cmd/indexdb@$vulndb"
	source=$(go mod download -json "golang.org/x/vulndb@$vulndb" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
	rm -rf "$database.new"
	"$bin/indexdb" -vulns "$source/data/osv" -out "$database.new"
	rm -rf "$database"
	mv "$database.new" "$database"
fi

exec "$bin/govulncheck-$govulncheck" -db "file://$database" ./...
