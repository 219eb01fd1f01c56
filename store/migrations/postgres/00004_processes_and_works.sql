-- +goose Up
-- Processes of workspaces, one row each. Neither their commands nor what they write is
-- here.
CREATE TABLE processes (
	id             TEXT    NOT NULL PRIMARY KEY,
	tenant         TEXT    NOT NULL,
	workspace      TEXT    NOT NULL,
	root           TEXT    NOT NULL, -- the folder that the workspace was then
	requester_kind TEXT    NOT NULL,
	requester      TEXT    NOT NULL,
	fingerprint    TEXT    NOT NULL,
	owner          TEXT    NOT NULL, -- the gateway that started it
	state          TEXT    NOT NULL,
	created        BIGINT  NOT NULL,
	ended          BIGINT,           -- NULL: not ended
	doc            TEXT    NOT NULL, -- JSON of writ.Process
	CHECK ((state = 'exited') = (ended IS NOT NULL))
);
CREATE INDEX processes_newest ON processes (created, id);
CREATE INDEX processes_newest_of_tenant ON processes (tenant, created, id);
CREATE INDEX processes_newest_of_requester ON processes (requester, created, id);
CREATE INDEX processes_newest_of_workspace ON processes (workspace, created, id);
CREATE INDEX processes_running ON processes (created, id) WHERE ended IS NULL;

-- The last that they wrote, for a while.
CREATE TABLE process_outputs (
	process  TEXT   NOT NULL PRIMARY KEY REFERENCES processes (id),
	retained BIGINT NOT NULL, -- where in the output data begins
	data     BYTEA  NOT NULL
);

-- What agents work on, and what people want of them meanwhile.
CREATE TABLE works (
	id        TEXT    NOT NULL PRIMARY KEY,
	tenant    TEXT    NOT NULL,
	workspace TEXT    NOT NULL,
	root      TEXT    NOT NULL, -- the folder that the workspace was then
	state     TEXT    NOT NULL,
	revision  BIGINT  NOT NULL, -- of its queue
	created   BIGINT  NOT NULL,
	doc       TEXT    NOT NULL  -- JSON of writ.Work
);
CREATE INDEX works_newest ON works (created, id);
CREATE INDEX works_newest_of_tenant ON works (tenant, created, id);
CREATE INDEX works_newest_of_workspace ON works (workspace, created, id);
CREATE INDEX works_open ON works (tenant, workspace, root) WHERE state <> 'closed';

CREATE TABLE intents (
	id        TEXT    NOT NULL PRIMARY KEY,
	tenant    TEXT    NOT NULL,
	workspace TEXT    NOT NULL,
	root      TEXT    NOT NULL,
	work      TEXT    REFERENCES works (id), -- NULL: for the next work of this root
	state     TEXT    NOT NULL,
	delivery  TEXT    NOT NULL,
	position  BIGINT  NOT NULL,
	revision  BIGINT  NOT NULL, -- of its text and where it goes
	body      TEXT    NOT NULL,
	doc       TEXT    NOT NULL  -- JSON of writ.Intent without its body
);
CREATE INDEX intents_of_work ON intents (work, position) WHERE work IS NOT NULL;
CREATE INDEX intents_loose ON intents (tenant, workspace, root) WHERE work IS NULL;
CREATE INDEX intents_of_root ON intents (tenant, workspace, root, position);
