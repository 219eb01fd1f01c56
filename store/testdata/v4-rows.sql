INSERT INTO processes (id, tenant, workspace, root, requester_kind, requester, fingerprint, owner, state, created, ended, doc)
VALUES ('proc-v4', 'acme', 'site', '/srv/site', 'agent', 'builder', 'f', 'gw', 'running', 1767225600000, NULL, '{"id":"proc-v4","state":"running"}');
INSERT INTO works (id, tenant, workspace, root, state, revision, created, doc)
VALUES ('work-v4', 'acme', 'site', '/srv/site', 'active', 3, 1767225600000, '{"id":"work-v4","state":"active","revision":3}');
INSERT INTO intents (id, tenant, workspace, root, work, state, delivery, position, revision, body, doc)
VALUES ('fb-v4', 'acme', 'site', '/srv/site', 'work-v4', 'queued', 'next_checkpoint', 1, 1, 'do it', '{"id":"fb-v4"}');
