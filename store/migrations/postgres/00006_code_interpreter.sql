-- +goose Up
-- Requests that callers made in a window, for rate limits.
CREATE TABLE counts (
	key   TEXT    NOT NULL PRIMARY KEY, -- a digest of the rule and the caller
	began BIGINT  NOT NULL,             -- the window
	used  BIGINT  NOT NULL,             -- requests in it
	ends  BIGINT  NOT NULL              -- the window
);
CREATE INDEX counts_ending ON counts (ends);

-- Runtime sessions of the code interpreter: what a run left in its folder for the next.
CREATE TABLE runtimes (
	key    TEXT    NOT NULL PRIMARY KEY, -- a digest of the tenant, the owner and the hint
	tenant TEXT    NOT NULL,
	holder TEXT    NOT NULL, -- a name that each holder makes anew; '' once it let go
	held   BIGINT  NOT NULL, -- until when, unless the holder renews it
	used   BIGINT  NOT NULL, -- last
	saved  BIGINT  NOT NULL, -- 1: there is a checkpoint
	files  BIGINT  NOT NULL, -- of the checkpoint
	bytes  BIGINT  NOT NULL  -- of them, each counted as if no other had the same ones
);
CREATE INDEX runtimes_unused ON runtimes (used, key);

CREATE TABLE runtime_files (
	runtime TEXT    NOT NULL REFERENCES runtimes (key),
	n       BIGINT  NOT NULL, -- their order
	sha256  TEXT    NOT NULL,
	doc     TEXT    NOT NULL, -- JSON of writ.FileInput
	PRIMARY KEY (runtime, n)
);
CREATE INDEX runtime_files_of_digest ON runtime_files (sha256);

-- The bodies of what users ran go after a while: those that are still there are found
-- without a look at the others.
ALTER TABLE tasks ADD COLUMN bodies BIGINT NOT NULL DEFAULT 1; -- 0: they were removed for their age
CREATE INDEX tasks_of_users_with_bodies ON tasks (updated, id) WHERE bodies = 1 AND substr(identity, 1, 5) = 'user:';
