-- +goose Up
-- Patches of workspaces, one row each. The text of a patch is never here.
CREATE TABLE operations (
	id             TEXT    NOT NULL PRIMARY KEY,
	tenant         TEXT    NOT NULL,
	workspace      TEXT    NOT NULL,
	root           TEXT    NOT NULL, -- the folder that the workspace was then
	key            TEXT    NOT NULL, -- '' when the caller gave none
	requester_kind TEXT    NOT NULL,
	requester      TEXT    NOT NULL,
	fingerprint    TEXT    NOT NULL,
	owner          TEXT    NOT NULL, -- the gateway that carries it out
	created        BIGINT  NOT NULL,
	finished       BIGINT,           -- NULL: not finished
	doc            TEXT    NOT NULL  -- JSON of writ.Operation
);
CREATE UNIQUE INDEX operations_by_key ON operations (tenant, workspace, root, key) WHERE key <> '';
CREATE INDEX operations_with_key ON operations (key, created, id) WHERE key <> '';
CREATE INDEX operations_newest ON operations (created, id);
CREATE INDEX operations_newest_of_tenant ON operations (tenant, created, id);
CREATE INDEX operations_newest_of_requester ON operations (requester, created, id);
CREATE INDEX operations_newest_of_workspace ON operations (workspace, created, id);
CREATE INDEX operations_unfinished ON operations (created, id) WHERE finished IS NULL;

-- An approval need not be of a task any more.
ALTER TABLE approvals
	ALTER COLUMN task DROP NOT NULL,                -- NULL when no task is held
	ADD COLUMN action  TEXT NOT NULL DEFAULT 'run', -- what is held; the documents of runs before this version do not say
	ADD COLUMN request TEXT NOT NULL DEFAULT '',    -- at most one that is not terminal; '' for runs
	ADD CHECK (action <> 'run' OR task IS NOT NULL);
DROP INDEX approvals_of_task;
DROP INDEX approvals_due;
CREATE INDEX approvals_of_task ON approvals (task) WHERE task IS NOT NULL;
CREATE INDEX approvals_newest_of_identity ON approvals (identity, created, id);
CREATE UNIQUE INDEX approvals_open ON approvals (request)
	WHERE request <> '' AND state IN ('pending', 'granted', 'queued', 'resuming');
CREATE INDEX approvals_due ON approvals (state, expires, id)
	WHERE state = 'pending' OR state = 'granted';

CREATE TABLE approval_bodies (
	approval TEXT NOT NULL REFERENCES approvals (id),
	name     TEXT NOT NULL, -- patch, plan, outcome
	data     BYTEA NOT NULL,
	PRIMARY KEY (approval, name)
);
