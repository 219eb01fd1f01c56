// Package testkit is what tests of several packages share: conformance suites that
// every implementation of a contract must pass ([Store], [Runner], [Files], [Processes]), a PostgreSQL server of
// one's own ([Postgres]), and waiting without sleeping. Only tests import it.
package testkit
