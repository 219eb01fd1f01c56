INSERT INTO operations (id, tenant, workspace, root, key, requester_kind, requester, fingerprint, owner, created, finished, doc)
VALUES ('op-v3', 'acme', 'site', '/srv/site', 'k', 'agent', 'builder', 'f', 'gw', 1767225600000, NULL,
	'{"id":"op-v3","key":"k","workspace":"site","root":"/srv/site","tenant":"acme","by":{"kind":"agent","id":"builder"},"fingerprint":"f","result":{"status":"unknown","changes":null},"created":"2026-01-01T00:00:00Z"}');
INSERT INTO approvals (id, action, task, request, tenant, identity, state, created, expires, doc)
VALUES ('appr-v3', 'patch', NULL, 'r', 'acme', 'builder', 'granted', 1767225600000, 1767229200000,
	'{"id":"appr-v3","action":"patch","tenant":"acme","identity":"builder","requester":{"kind":"agent","id":"builder"},"state":"granted","reason":"","rules":null,"need":{"grants":1},"policy":"p","digest":"d","created":"2026-01-01T00:00:00Z","expires":"2026-01-01T01:00:00Z"}');
INSERT INTO approval_bodies (approval, name, data) VALUES ('appr-v3', 'patch', x'70617463');
