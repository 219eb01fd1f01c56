import { req, auth, recorder, multipart } from './lib.mjs';
const { rec, save } = recorder((process.env.OUT ?? '.') + '/C-files.json');
const up = (path, parts, o = {}, hx = {}) => {
  const m = multipart(parts);
  return req('POST', path, { body: m.body, headers: { ...m.headers, ...auth(o), ...hx } });
};
const F = (v = 'hello', filename = 'a.txt', type = 'text/plain', name = 'file') => ({ name, filename, type, value: v });
const id = [
  { name: 'kind', value: 'user' },
  { name: 'id', value: 'user-1' },
];
// ---- upload
const u1 = await rec('upload user one', up('/upload', [...id, F()]));
await rec('upload kind only (id optional for user)', up('/upload', [{ name: 'kind', value: 'user' }, F()]));
await rec('upload two files', up('/upload', [...id, F('1', 'a.txt'), F('2', 'b.txt')]));
await rec('upload no files', up('/upload', id));
await rec('upload fields AFTER file', up('/upload', [F(), ...id]));
await rec('upload no kind', up('/upload', [F()]));
await rec('upload legacy entity_id only', up('/upload', [{ name: 'entity_id', value: 'e' }, F()]));
await rec('upload bad kind', up('/upload', [{ name: 'kind', value: 'system' }, { name: 'id', value: 'x' }, F()]));
await rec('upload agent without id', up('/upload', [{ name: 'kind', value: 'agent' }, F()]));
await rec(
  'upload skill no version',
  up('/upload', [{ name: 'kind', value: 'skill' }, { name: 'id', value: 's1' }, F()]),
);
await rec(
  'upload skill bad version',
  up('/upload', [
    { name: 'kind', value: 'skill' },
    { name: 'id', value: 's1' },
    { name: 'version', value: 'abc' },
    F(),
  ]),
);
await rec('upload user with version', up('/upload', [...id, { name: 'version', value: '1' }, F()]));
const sk = await rec(
  'upload skill v3 read_only nested',
  up('/upload', [
    { name: 'kind', value: 'skill' },
    { name: 'id', value: 's1' },
    { name: 'version', value: '3' },
    { name: 'read_only', value: 'TRUE' },
    F('# skill', 'skills/pptx/SKILL.md', 'text/markdown'),
  ]),
);
const ag = await rec(
  'upload agent',
  up('/upload', [{ name: 'kind', value: 'agent' }, { name: 'id', value: 'agent_1' }, F('x', 'k.csv', 'text/csv')]),
);
await rec('upload wrong content type', req('POST', '/upload', { body: {}, headers: auth() }));
await rec(
  'upload no auth',
  (() => {
    const m = multipart([...id, F()]);
    return req('POST', '/upload', { body: m.body, headers: m.headers });
  })(),
);
await rec(
  'upload file > plan limit (1024 via plan tiny)',
  up('/upload', [...id, F('z'.repeat(3000), 'big.bin')], { plan_id: 'tiny' }),
);
await rec(
  'upload exactly 1024 (plan tiny)',
  up('/upload', [...id, F('z'.repeat(1024), 'edge.txt')], { plan_id: 'tiny' }),
);
await rec('upload empty file', up('/upload', [...id, F('', 'pkg/__init__.py', 'text/x-python')]));
const un = await rec('upload utf8 filename raw bytes', up('/upload', [...id, F('u', 'données/日本.txt')]));
await rec(
  'upload filename*=',
  (() => {
    const m = multipart([
      ...id,
      {
        name: 'file',
        filename: 'x.txt',
        extra: "; filename*=UTF-8''%E6%97%A5%E6%9C%AC.txt",
        type: 'text/plain',
        value: 'u',
      },
    ]);
    return req('POST', '/upload', { body: m.body, headers: { ...m.headers, ...auth() } });
  })(),
);
await rec('upload no filename part', up('/upload', [...id, { name: 'file', value: 'plain field' }]));
await rec('upload field name other than file', up('/upload', [...id, F('x', 'q.txt', 'text/plain', 'whatever')]));
await rec('upload no part content-type', up('/upload', [...id, { name: 'file', filename: 'n.txt', value: 'x' }]));
await rec('upload traversal name', up('/upload', [...id, F('x', '../../etc/x.txt')]));
await rec('upload absolute name', up('/upload', [...id, F('x', '/etc/x.txt')]));
await rec('upload backslash name', up('/upload', [...id, F('x', 'C:\\\\dir\\\\x.txt')]));
await rec(
  'upload truncated body',
  (() => {
    const m = multipart([...id, F('x'.repeat(100))]);
    return req('POST', '/upload', {
      body: m.body.subarray(0, m.body.length - 30),
      headers: { ...m.headers, ...auth() },
      timeout: 4000,
    });
  })(),
);
await rec(
  'upload bad boundary',
  req('POST', '/upload', { body: 'junk', headers: { 'Content-Type': 'multipart/form-data', ...auth() } }),
);
// ---- batch
const b1 = await rec(
  'batch 3',
  up('/upload/batch', [...id, F('1', 'x/a.txt'), F('2', 'x/b.txt'), F('', 'x/__init__.py')]),
);
await rec('batch none', up('/upload/batch', id));
await rec('batch bad kind', up('/upload/batch', [{ name: 'kind', value: 'nope' }, F(), F('2', 'b.txt')]));
await rec('batch fields after', up('/upload/batch', [F(), ...id, F('2', 'b.txt')]));
await rec(
  'batch partial size',
  up('/upload/batch', [...id, F('ok', 'ok.txt'), F('z'.repeat(5000), 'big.txt')], { plan_id: 'tiny' }),
);
const b205 = await up('/upload/batch', [...id, ...Array.from({ length: 205 }, (_, i) => F(String(i), `f${i}.txt`))]);
if (b205.body?.files)
  b205.body.files = `<${b205.body.files.length} entries; first ${JSON.stringify(b205.body.files[0])}>`;
await rec('batch 205 files', Promise.resolve(b205));
// ---- list / meta / download
const S = u1.body.storage_session_id,
  FI = u1.body.files[0].fileId;
const q = (o) => '?' + new URLSearchParams(o);
for (const d of [undefined, 'simple', 'summary', 'full', 'normalized', 'bogus'])
  await rec(
    'files detail=' + d,
    req(
      'GET',
      `/files/${b1.body.storage_session_id}${q({ kind: 'user', id: 'user-1', ...(d ? { detail: d } : {}) })}`,
      { headers: auth() },
    ),
  );
await rec(
  'files skill normalized read_only',
  req(
    'GET',
    `/files/${sk.body.storage_session_id}${q({ kind: 'skill', id: 's1', version: '3', detail: 'normalized' })}`,
    { headers: auth({ sub: 'user-2' }) },
  ),
);
await rec(
  'files skill full',
  req('GET', `/files/${sk.body.storage_session_id}${q({ kind: 'skill', id: 's1', version: '3', detail: 'full' })}`, {
    headers: auth({ sub: 'user-2' }),
  }),
);
await rec(
  'files skill wrong version',
  req('GET', `/files/${sk.body.storage_session_id}${q({ kind: 'skill', id: 's1', version: '4' })}`, {
    headers: auth(),
  }),
);
await rec('files no kind', req('GET', `/files/${S}`, { headers: auth() }));
await rec(
  'files other user',
  req('GET', `/files/${S}${q({ kind: 'user', id: 'user-1' })}`, { headers: auth({ sub: 'user-2' }) }),
);
await rec(
  'files other tenant',
  req('GET', `/files/${S}${q({ kind: 'user', id: 'user-1' })}`, { headers: auth({ tenant_id: 't2' }) }),
);
await rec(
  'files user: id query ignored',
  req('GET', `/files/${S}${q({ kind: 'user', id: 'someone-else' })}`, { headers: auth() }),
);
await rec(
  'files kind=user with version',
  req('GET', `/files/${S}${q({ kind: 'user', id: 'user-1', version: '1' })}`, { headers: auth() }),
);
await rec('files bad session id', req('GET', `/files/short${q({ kind: 'user' })}`, { headers: auth() }));
await rec(
  'files unknown session',
  req('GET', `/files/zzzzzzzzzzzzzzzzzzzzz${q({ kind: 'user' })}`, { headers: auth() }),
);
await rec('files kind repeated', req('GET', `/files/${S}?kind=user&kind=agent`, { headers: auth() }));
await rec(
  'object metadata',
  req('GET', `/sessions/${S}/objects/${FI}${q({ kind: 'user', id: 'user-1' })}`, { headers: auth() }),
);
await rec(
  'object metadata skill read-only',
  req(
    'GET',
    `/sessions/${sk.body.storage_session_id}/objects/${sk.body.files[0].fileId}${q({ kind: 'skill', id: 's1', version: '3' })}`,
    { headers: auth() },
  ),
);
await rec(
  'object metadata missing',
  req('GET', `/sessions/${S}/objects/zzzzzzzzzzzzzzzzzzzzz${q({ kind: 'user', id: 'user-1' })}`, { headers: auth() }),
);
await rec(
  'object metadata bad file id',
  req('GET', `/sessions/${S}/objects/abc${q({ kind: 'user' })}`, { headers: auth() }),
);
await rec('object list public? (404)', req('GET', `/sessions/${S}/objects${q({ kind: 'user' })}`, { headers: auth() }));
await rec('download', req('GET', `/download/${S}/${FI}${q({ kind: 'user', id: 'user-1' })}`, { headers: auth() }));
await rec(
  'download HEAD',
  req('HEAD', `/download/${S}/${FI}${q({ kind: 'user', id: 'user-1' })}`, { headers: auth() }),
);
await rec(
  'download Range',
  req('GET', `/download/${S}/${FI}${q({ kind: 'user', id: 'user-1' })}`, {
    headers: { ...auth(), Range: 'bytes=1-2' },
  }),
);
await rec('download no kind', req('GET', `/download/${S}/${FI}`, { headers: auth() }));
await rec(
  'download other user',
  req('GET', `/download/${S}/${FI}${q({ kind: 'user' })}`, { headers: auth({ sub: 'user-2' }) }),
);
await rec(
  'download missing',
  req('GET', `/download/${S}/zzzzzzzzzzzzzzzzzzzzz${q({ kind: 'user' })}`, { headers: auth() }),
);
await rec(
  'download skill by other user (read-only hdr)',
  req(
    'GET',
    `/download/${sk.body.storage_session_id}/${sk.body.files[0].fileId}${q({ kind: 'skill', id: 's1', version: '3' })}`,
    { headers: auth({ sub: 'user-9' }) },
  ),
);
await rec(
  'download utf8 name',
  req('GET', `/download/${un.body.storage_session_id}/${un.body.files[0].fileId}${q({ kind: 'user' })}`, {
    headers: auth(),
  }),
);
await rec(
  'download agent',
  req(
    'GET',
    `/download/${ag.body.storage_session_id}/${ag.body.files[0].fileId}${q({ kind: 'agent', id: 'agent_1' })}`,
    { headers: auth() },
  ),
);
// ---- delete
await rec(
  'delete other user',
  req('DELETE', `/files/${S}/${FI}${q({ kind: 'user' })}`, { headers: auth({ sub: 'user-2' }) }),
);
await rec('delete no kind', req('DELETE', `/files/${S}/${FI}`, { headers: auth() }));
await rec('delete', req('DELETE', `/files/${S}/${FI}${q({ kind: 'user', id: 'user-1' })}`, { headers: auth() }));
await rec('delete again', req('DELETE', `/files/${S}/${FI}${q({ kind: 'user', id: 'user-1' })}`, { headers: auth() }));
await rec('download deleted', req('GET', `/download/${S}/${FI}${q({ kind: 'user' })}`, { headers: auth() }));
await rec('files after delete', req('GET', `/files/${S}${q({ kind: 'user' })}`, { headers: auth() }));
await rec(
  'upload 26MB default plan',
  up('/upload', [...id, F(Buffer.alloc(26 * 1024 * 1024, 1), 'big.bin', 'application/octet-stream')]),
);
save();
