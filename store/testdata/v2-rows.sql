INSERT INTO tasks (id, tenant, identity, key, state, owner, request_digest, created, updated, doc)
VALUES ('task_a', 'acme', 'builder', '', 'held', '', 'd', 1767225600000, 1767225600000,
	'{"id":"task_a","tenant":"acme","identity":"builder","requester":{"kind":"agent","id":"builder"},"state":"held","created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z"}'),
	('task_b', 'acme', 'tester', '', 'succeeded', 'gw', 'd', 1767225600000, 1767225600000,
	'{"id":"task_b","tenant":"acme","identity":"tester","requester":{"kind":"agent","id":"tester"},"state":"succeeded","created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z"}');
INSERT INTO approvals (id, task, tenant, identity, state, created, expires, doc)
VALUES ('appr_a', 'task_a', 'acme', 'builder', 'pending', 1767225600000, 1767229200000,
	'{"id":"appr_a","task":"task_a","tenant":"acme","identity":"builder","requester":{"kind":"agent","id":"builder"},"state":"pending","reason":"","rules":null,"need":{"grants":1},"spec":"s","policy":"p","digest":"d","created":"2026-01-01T00:00:00Z","expires":"2026-01-01T01:00:00Z"}'),
	('appr_b', 'task_b', 'acme', 'tester', 'denied', 1767225600000, 1767229200000,
	'{"id":"appr_b","task":"task_b","tenant":"acme","identity":"tester","requester":{"kind":"agent","id":"tester"},"state":"denied","reason":"","rules":null,"need":{"grants":1},"spec":"s","policy":"p","digest":"d","votes":[{"by":{"kind":"operator","id":"olga"},"verdict":"deny","at":"2026-01-01T00:00:00Z"}],"created":"2026-01-01T00:00:00Z","expires":"2026-01-01T01:00:00Z"}'),
	('appr_c', 'task_b', 'acme', 'tester', 'consumed', 1767225600001, 1767229200000,
	'{"id":"appr_c","task":"task_b","tenant":"acme","identity":"tester","requester":{"kind":"agent","id":"tester"},"state":"consumed","reason":"","rules":null,"need":{"grants":1},"spec":"s","policy":"p","digest":"d","votes":[{"by":{"kind":"operator","id":"olga"},"verdict":"grant","at":"2026-01-01T00:00:00Z"}],"created":"2026-01-01T00:00:00.001Z","expires":"2026-01-01T01:00:00Z"}');
INSERT INTO api_keys (id, kind, subject, tenant, hash, created) VALUES ('key_v2', 'agent', 'builder', 'acme', 'h', 1767225600000);
INSERT INTO operators (id, tenant, roles, created) VALUES ('olga', 'acme', '["lead"]', 1767225600000);
INSERT INTO leases (owner, until) VALUES ('gw', 1767225600000);
