-- +goose Up
CREATE TABLE tasks (
	id             TEXT    NOT NULL PRIMARY KEY,
	tenant         TEXT    NOT NULL,
	identity       TEXT    NOT NULL,
	key            TEXT    NOT NULL, -- '' when the caller gave none
	state          TEXT    NOT NULL,
	owner          TEXT    NOT NULL, -- the gateway that claimed it, '' before
	request_digest TEXT    NOT NULL,
	created        BIGINT  NOT NULL, -- milliseconds since 1970, as every time here
	updated        BIGINT  NOT NULL,
	doc            TEXT    NOT NULL  -- JSON of writ.Task without outputs
);
CREATE UNIQUE INDEX tasks_by_key ON tasks (tenant, identity, key) WHERE key <> '';
CREATE INDEX tasks_newest ON tasks (created, id);
CREATE INDEX tasks_newest_of_tenant ON tasks (tenant, created, id);
CREATE INDEX tasks_newest_of_identity ON tasks (identity, created, id);
CREATE INDEX tasks_newest_in_state ON tasks (state, created, id);
CREATE INDEX tasks_running ON tasks (owner) WHERE state = 'running';

CREATE TABLE approvals (
	id       TEXT    NOT NULL PRIMARY KEY,
	task     TEXT    NOT NULL REFERENCES tasks (id),
	tenant   TEXT    NOT NULL,
	identity TEXT    NOT NULL,
	state    TEXT    NOT NULL,
	created  BIGINT  NOT NULL,
	expires  BIGINT  NOT NULL,
	doc      TEXT    NOT NULL -- JSON of writ.Approval
);
CREATE INDEX approvals_of_task ON approvals (task);
CREATE INDEX approvals_newest ON approvals (created, id);
CREATE INDEX approvals_newest_of_tenant ON approvals (tenant, created, id);
CREATE INDEX approvals_newest_in_state ON approvals (state, created, id);
CREATE INDEX approvals_due ON approvals (expires) WHERE state = 'pending';

CREATE TABLE bodies (
	task TEXT NOT NULL REFERENCES tasks (id),
	name TEXT NOT NULL, -- spec, stdout, stderr
	data BYTEA NOT NULL,
	PRIMARY KEY (task, name)
);

-- The audit log: records, the stored hashes of its Merkle tree, and its signed head.
CREATE TABLE events (
	seq    BIGINT  NOT NULL PRIMARY KEY,
	type   TEXT    NOT NULL,
	tenant TEXT    NOT NULL,
	task   TEXT    NOT NULL,
	data   BYTEA   NOT NULL -- the record's exact bytes
);
CREATE INDEX events_of_task ON events (task, seq) WHERE task <> '';
CREATE INDEX events_of_tenant ON events (tenant, seq);
CREATE INDEX events_of_type ON events (type, seq);

CREATE TABLE log_hashes (
	idx  BIGINT  NOT NULL PRIMARY KEY,
	hash BYTEA   NOT NULL CHECK (length(hash) = 32)
);

CREATE TABLE log_head (
	one  BIGINT  NOT NULL PRIMARY KEY CHECK (one = 1),
	size BIGINT  NOT NULL,
	note TEXT    NOT NULL
);
INSERT INTO log_head (one, size, note) VALUES (1, 0, '');

-- +goose StatementBegin
CREATE FUNCTION log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'the audit log is append-only';
END
$$;
-- +goose StatementEnd
CREATE TRIGGER events_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events
	FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
CREATE TRIGGER log_hashes_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON log_hashes
	FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
CREATE TRIGGER log_head_never_goes BEFORE DELETE OR TRUNCATE ON log_head
	FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
CREATE TRIGGER log_head_never_shrinks BEFORE UPDATE ON log_head
	FOR EACH ROW WHEN (NEW.size < OLD.size) EXECUTE FUNCTION log_is_append_only();
