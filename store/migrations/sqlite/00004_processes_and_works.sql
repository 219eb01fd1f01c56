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
	created        INTEGER NOT NULL,
	ended          INTEGER,          -- NULL: not ended
	doc            TEXT    NOT NULL, -- JSON of writ.Process
	CHECK ((state = 'exited') = (ended IS NOT NULL))
) STRICT;
CREATE INDEX processes_newest ON processes (created, id);
CREATE INDEX processes_newest_of_tenant ON processes (tenant, created, id);
CREATE INDEX processes_newest_of_requester ON processes (requester, created, id);
CREATE INDEX processes_newest_of_workspace ON processes (workspace, created, id);
CREATE INDEX processes_running ON processes (created, id) WHERE ended IS NULL;

-- The last that they wrote, for a while.
CREATE TABLE process_outputs (
	process  TEXT    NOT NULL PRIMARY KEY REFERENCES processes (id),
	retained INTEGER NOT NULL, -- where in the output data begins
	data     BLOB    NOT NULL
) STRICT;
