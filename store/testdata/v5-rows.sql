INSERT INTO tasks (id, tenant, identity, key, state, owner, request_digest, created, updated, doc)
VALUES ('task_v5', 'acme', 'user:ada', '', 'failed', '', 'd', 1767225600000, 1767225600000,
	'{"id":"task_v5","tenant":"acme","identity":"user:ada","requester":{"kind":"user","id":"ada"},"state":"failed","created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z"}');
INSERT INTO bodies (task, name, data) VALUES ('task_v5', 'spec', x'636f6465');
INSERT INTO sessions (id, tenant, created, expires, objects, bytes, doc)
VALUES ('session-of-version--5', 'acme', 1767225600000, 1767312000000, 1, 4, '{"kind":"user","key":"k"}');
INSERT INTO session_totals (tenant, sessions, objects, bytes) VALUES ('acme', 1, 1, 4);
INSERT INTO objects (id, session, sha256, size, created, doc)
VALUES ('object-of-version---5', 'session-of-version--5', 'digest', 4, 1767225600000, '{"name":"a.txt","type":"text/plain"}');
