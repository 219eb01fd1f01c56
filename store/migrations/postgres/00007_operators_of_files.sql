-- +goose Up
-- What operators see of storage sessions, newest first: of all tenants, and of one.
CREATE INDEX sessions_newest ON sessions (created, id);
CREATE INDEX sessions_of_tenant ON sessions (tenant, created, id);

-- The folder of the bytes that objects and runtime sessions name. There is one row.
CREATE TABLE blob_folder (
	one     BIGINT  NOT NULL PRIMARY KEY CHECK (one = 1),
	owner   TEXT    NOT NULL, -- a name of this database, which that folder has
	claimed BIGINT  NOT NULL  -- 1: there is such a folder
);

-- What was removed since its time was over, and stands in no event yet. There is one row.
CREATE TABLE unrecorded_removal (
	one BIGINT  NOT NULL PRIMARY KEY CHECK (one = 1),
	doc TEXT    NOT NULL -- JSON of writ.FileRemoval
);
