# Everything needs Go 1.21 or newer; the toolchain named here is fetched by it.
# Where that cannot be had, the local Go is used, with a warning.
TOOLCHAIN ?= go1.27.3
export GOTOOLCHAIN := $(shell scripts/toolchain.sh $(TOOLCHAIN))

FUZZTIME ?= 30s
VERSION ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)

.DEFAULT_GOAL := help
.PHONY: help demo test check lint bench build vuln fuzz setup clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' Makefile

demo: ## see it work: an allowed, a denied and a held task, and the audit trail
	@scripts/setup.sh run
	@$(MAKE) --no-print-directory build
	@WRIT="$(CURDIR)/build/writ" scripts/demo.sh

test: ## install what the tests need, and run all of them with the race detector
	@scripts/setup.sh test
	@scripts/test.sh

check: lint test ## what CI runs: format, vet, staticcheck, tests

lint: ## format, vet, staticcheck
	@scripts/lint.sh

bench: ## measure: Go benchmarks, then bench/run.sh
	@scripts/setup.sh bench
	go test -run '^$$' -bench . -benchmem ./...
	@if [ -x bench/run.sh ]; then bench/run.sh; fi

build: ## build/writ, static
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o build/writ ./cmd/writ

vuln: ## known vulnerabilities in what we link, from a local copy of the database
	@scripts/vuln.sh

fuzz: ## every fuzz test for FUZZTIME (30s) each
	@scripts/fuzz.sh $(FUZZTIME)

setup: ## install what demo and tests need, as root or through sudo
	@scripts/setup.sh test

clean: ## remove build/
	rm -rf build
