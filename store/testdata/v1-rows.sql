INSERT INTO tasks (id, tenant, identity, key, state, owner, request_digest, created, updated, doc)
VALUES ('task_v1', 'acme', 'builder', 'k', 'held', '', 'd', 1767225600000, 1767225600000,
	'{"id":"task_v1","key":"k","tenant":"acme","identity":"builder","requester":{"kind":"agent","id":"builder"},"step":"from version 1","state":"held","created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z"}');
INSERT INTO approvals (id, task, tenant, identity, state, created, expires, doc)
VALUES ('appr_v1', 'task_v1', 'acme', 'builder', 'pending', 1767225600000, 1767229200000,
	'{"id":"appr_v1","task":"task_v1","tenant":"acme","identity":"builder","requester":{"kind":"agent","id":"builder"},"state":"pending","reason":"","rules":null,"need":{"grants":1},"spec":"","policy":"","digest":"","created":"2026-01-01T00:00:00Z","expires":"2026-01-01T01:00:00Z"}');
INSERT INTO bodies (task, name, data) VALUES ('task_v1', 'spec', x'636f6465');
INSERT INTO events (seq, type, tenant, task, data) VALUES (0, 'task.received', 'acme', 'task_v1', x'7b7d');
INSERT INTO log_hashes (idx, hash) VALUES (0, x'3031323334353637383961626364656630313233343536373839616263646566');
UPDATE log_head SET size = 1, note = 'signed';
