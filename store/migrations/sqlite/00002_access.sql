-- +goose Up
CREATE TABLE api_keys (
	id      TEXT    NOT NULL PRIMARY KEY,
	kind    TEXT    NOT NULL, -- agent, operator
	subject TEXT    NOT NULL,
	tenant  TEXT    NOT NULL,
	hash    TEXT    NOT NULL, -- of the secret part
	created INTEGER NOT NULL,
	expires INTEGER,          -- NULL: never
	revoked INTEGER           -- NULL: not revoked
) STRICT;
CREATE INDEX api_keys_of_tenant ON api_keys (tenant, created, id);

CREATE TABLE operators (
	id       TEXT    NOT NULL PRIMARY KEY,
	tenant   TEXT    NOT NULL,
	roles    TEXT    NOT NULL, -- a JSON array
	created  INTEGER NOT NULL,
	disabled INTEGER           -- NULL: not disabled
) STRICT;
CREATE INDEX operators_of_tenant ON operators (tenant, created, id);

-- Which gateways are alive: one row each, renewed by its owner.
CREATE TABLE leases (
	owner TEXT    NOT NULL PRIMARY KEY,
	until INTEGER NOT NULL
) STRICT;
