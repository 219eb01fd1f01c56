import { req, auth, jwt, recorder, BASE } from './lib.mjs';
const { rec, save } = recorder((process.env.OUT ?? '.') + '/A-auth.json');
const X = { lang: 'bash', code: 'echo hi' };
const root = BASE.replace('/v1', '');
await rec('health', req('GET', '/health'));
await rec('health HEAD', req('HEAD', '/health'));
await rec('no auth', req('POST', '/exec', { body: X }));
await rec('x-api-key', req('POST', '/exec', { body: X, headers: { 'X-API-Key': 'k' } }));
await rec('x-api-key + bearer', req('POST', '/exec', { body: X, headers: { 'X-API-Key': 'k', ...auth() } }));
await rec('basic', req('POST', '/exec', { body: X, headers: { Authorization: 'Basic abc' } }));
await rec('garbage bearer', req('POST', '/exec', { body: X, headers: { Authorization: 'Bearer abc' } }));
await rec('ok lower-case bearer', req('POST', '/exec', { body: X, headers: { Authorization: `bearer ${jwt()}` } }));
const V = {
  expired: { exp: 1, iat: 0 - 0 },
  'expired 20s ago (skew ok)': null,
  'ttl 301': null,
  'aud wrong': { aud: 'x' },
  'aud array ok': { aud: ['x', 'codeapi'] },
  'iss wrong': { iss: 'x' },
  'no sub': { sub: undefined },
  'no jti': { jti: undefined },
  'no nbf': { nbf: undefined },
  'no tenant_id (non strict ok)': { tenant_id: undefined },
  'tenant_id empty': { tenant_id: '' },
  'no principal_source': { principal_source: undefined },
  'principal_source openid_reuse ok': { principal_source: 'openid_reuse' },
  'principal_source other': { principal_source: 'x' },
  'no auth_context_hash': { auth_context_hash: undefined },
  'plan_id empty': { plan_id: '' },
  'plan_id unknown ok': { plan_id: 'zzz' },
};
const now = () => Math.floor(Date.now() / 1000);
V['expired 20s ago (skew ok)'] = { iat: now() - 100, nbf: now() - 100, exp: now() - 20 };
V['ttl 301'] = { iat: now(), nbf: now(), exp: now() + 301 };
V['future iat 20s ok'] = { iat: now() + 20, nbf: now() + 20, exp: now() + 200 };
V['future iat 40s'] = { iat: now() + 45, nbf: now(), exp: now() + 200 };
for (const [k, o] of Object.entries(V)) await rec('jwt ' + k, req('POST', '/exec', { body: X, headers: auth(o) }));
await rec(
  'jwt bad kid',
  req('POST', '/exec', { body: X, headers: { Authorization: 'Bearer ' + jwt({}, { kid: 'nope' }) } }),
);
await rec(
  'jwt typ at+jwt',
  req('POST', '/exec', { body: X, headers: { Authorization: 'Bearer ' + jwt({}, { typ: 'at+jwt' }) } }),
);
await rec(
  'jwt alg HS256',
  req('POST', '/exec', { body: X, headers: { Authorization: 'Bearer ' + jwt({}, { alg: 'HS256' }) } }),
);
await rec(
  'synthetic exec',
  req('POST', '/exec', { body: X, headers: { 'X-CodeAPI-Synthetic-Token': 'synthetic-token-0123456789-0123456789' } }),
);
await rec('synthetic bad', req('POST', '/exec', { body: X, headers: { 'X-CodeAPI-Synthetic-Token': 'nope' } }));
await rec(
  'synthetic other route',
  req('GET', '/files/aaaaaaaaaaaaaaaaaaaaa', {
    headers: { 'X-CodeAPI-Synthetic-Token': 'synthetic-token-0123456789-0123456789' },
  }),
);
await rec('unknown route authed', req('GET', '/nope', { headers: auth() }));
await rec('unknown route unauth', req('GET', '/nope'));
await rec('no /v1 prefix', req('POST', root + '/exec', { body: X, headers: auth() }));
await rec('GET /v1/exec', req('GET', '/exec', { headers: auth() }));
await rec('malformed json unauth', req('POST', '/exec', { body: '{"lang":' }));
await rec('malformed json authed', req('POST', '/exec', { body: '{"lang":', headers: auth() }));
await rec('json array body', req('POST', '/exec', { body: '[1]', headers: auth(), timeout: 4000 }));
await rec(
  'json text/plain ct',
  req('POST', '/exec', {
    body: JSON.stringify(X),
    headers: { ...auth(), 'Content-Type': 'text/plain' },
    timeout: 4000,
  }),
);
await rec('trailing slash /exec/', req('POST', '/exec/', { body: X, headers: auth() }));
await rec('case /EXEC', req('POST', '/EXEC', { body: X, headers: auth() }));
await rec(
  '51MB json',
  req('POST', '/exec', { body: JSON.stringify({ lang: 'bash', code: 'x'.repeat(51 * 1024 * 1024) }), headers: auth() }),
);
await rec('rate limit headers', req('POST', '/exec', { body: X, headers: auth() }));
save();
