-- +goose Up
-- Storage sessions of the code interpreter, and what they hold. The bytes are elsewhere,
-- by digest.
CREATE TABLE sessions (
	id      TEXT    NOT NULL PRIMARY KEY,
	tenant  TEXT    NOT NULL,
	created BIGINT  NOT NULL,
	expires BIGINT  NOT NULL,
	objects BIGINT  NOT NULL, -- how many it holds
	bytes   BIGINT  NOT NULL, -- of them
	doc     TEXT    NOT NULL  -- JSON of writ.Session
);
CREATE INDEX sessions_expiring ON sessions (expires, id);

-- What the sessions of a tenant hold together: a bound on it must not cost a count.
CREATE TABLE session_totals (
	tenant   TEXT    NOT NULL PRIMARY KEY,
	sessions BIGINT  NOT NULL CHECK (sessions >= 0),
	objects  BIGINT  NOT NULL CHECK (objects >= 0),
	bytes    BIGINT  NOT NULL CHECK (bytes >= 0)
);

CREATE TABLE objects (
	id      TEXT    NOT NULL PRIMARY KEY,
	session TEXT    NOT NULL REFERENCES sessions (id),
	sha256  TEXT    NOT NULL,
	size    BIGINT  NOT NULL,
	created BIGINT  NOT NULL,
	doc     TEXT    NOT NULL  -- JSON of writ.Object
);
CREATE INDEX objects_of_session ON objects (session, created, id);
CREATE INDEX objects_of_digest ON objects (sha256);
