-- +goose Up
CREATE TABLE api_keys (
	id      TEXT    NOT NULL PRIMARY KEY,
	kind    TEXT    NOT NULL, -- agent, operator
	subject TEXT    NOT NULL,
	tenant  TEXT    NOT NULL,
	hash    TEXT    NOT NULL, -- of the secret part
	created BIGINT  NOT NULL,
	expires BIGINT,           -- NULL: never
	revoked BIGINT            -- NULL: not revoked
);
CREATE INDEX api_keys_of_tenant ON api_keys (tenant, created, id);

CREATE TABLE operators (
	id       TEXT    NOT NULL PRIMARY KEY,
	tenant   TEXT    NOT NULL,
	roles    TEXT    NOT NULL, -- a JSON array
	created  BIGINT  NOT NULL,
	disabled BIGINT            -- NULL: not disabled
);
CREATE INDEX operators_of_tenant ON operators (tenant, created, id);

-- Which gateways are alive: one row each, renewed by its owner.
CREATE TABLE leases (
	owner TEXT    NOT NULL PRIMARY KEY,
	until BIGINT  NOT NULL
);
