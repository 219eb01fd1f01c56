import { req, auth, recorder, multipart } from './lib.mjs';
const { rec, save } = recorder((process.env.OUT ?? '.') + '/D-exec-files.json');
const up = async (parts, o = {}) => {
  const m = multipart(parts);
  return (await req('POST', '/upload/batch', { body: m.body, headers: { ...m.headers, ...auth(o) } })).body;
};
const F = (v, filename, type = 'text/plain') => ({ name: 'file', filename, type, value: v });
const U = [
  { name: 'kind', value: 'user' },
  { name: 'id', value: 'user-1' },
];
const ex = (code, files, o = {}, lang = 'bash', extra = {}) =>
  req('POST', '/exec', {
    body: { lang, code, ...(files !== undefined ? { files } : {}), ...extra },
    headers: auth(o),
    timeout: 60000,
  });
const u = await up([...U, F('one\n', 'data/in.csv', 'text/csv'), F('two\n', 'b.txt')]);
const sk = await up([
  { name: 'kind', value: 'skill' },
  { name: 'id', value: '6655aabbccddeeff00112233' },
  { name: 'version', value: '3' },
  { name: 'read_only', value: 'true' },
  F('# md\n', 'skills/pptx/SKILL.md'),
  F('', 'skills/pptx/__init__.py'),
]);
const ref = (s, i, kind, rid, over = {}) => ({
  id: s.files[i].fileId,
  resource_id: rid,
  storage_session_id: s.storage_session_id,
  name: s.files[i].filename,
  kind,
  ...over,
});
const u0 = ref(u, 0, 'user', 'user-1'),
  u1 = ref(u, 1, 'user', 'user-1');
const s0 = ref(sk, 0, 'skill', '6655aabbccddeeff00112233', { version: 3 });
await rec('user files cat', ex('ls -lR; cat data/in.csv b.txt', [u0, u1]));
await rec('user file resource_id arbitrary', ex('cat b.txt', [{ ...u1, resource_id: 'whatever' }]));
await rec('request name differs from stored name', ex('ls -R', [{ ...u1, name: 'renamed.txt' }]));
await rec('modify input', ex('echo more >> b.txt; echo new > new.txt', [u0, u1]));
await rec('delete input', ex('rm b.txt', [u0, u1]));
await rec(
  'skill as other user, read-only write attempt',
  ex(
    'ls -l skills/pptx; echo x >> skills/pptx/SKILL.md; rm skills/pptx/SKILL.md; echo hacked > skills/pptx/SKILL.md; cat skills/pptx/SKILL.md',
    [s0],
    { sub: 'user-2' },
  ),
);
for (const [n, f] of Object.entries({
  'files not array': 'x',
  'files entry not object': ['x'],
  'files null': null,
  'files empty': [],
  'id bad': [{ ...u1, id: 'short' }],
  'resource_id missing': [{ ...u1, resource_id: undefined }],
  'resource_id bad chars': [{ ...u1, resource_id: 'a b' }],
  'storage_session_id missing (legacy session_id)': [{ id: u1.id, session_id: u1.storage_session_id, name: 'b.txt' }],
  'storage_session_id only missing': [{ ...u1, storage_session_id: undefined }],
  'name missing': [{ ...u1, name: undefined }],
  'name empty': [{ ...u1, name: '' }],
  'name abs': [{ ...u1, name: '/x' }],
  'name ..': [{ ...u1, name: 'a/../b' }],
  'name ./': [{ ...u1, name: './b' }],
  'name trailing slash': [{ ...u1, name: 'b/' }],
  'name backslash': [{ ...u1, name: 'a\\b' }],
  'name 257': [{ ...u1, name: 'x'.repeat(257) }],
  'name depth 11': [{ ...u1, name: Array(11).fill('d').join('/') }],
  'kind missing': [{ ...u1, kind: undefined }],
  'kind bad': [{ ...u1, kind: 'x' }],
  'skill no version': [{ ...s0, version: undefined }],
  'skill version string': [{ ...s0, version: '3' }],
  'user with version': [{ ...u1, version: 1 }],
  'skill wrong version': [{ ...s0, version: 4 }],
  'unknown storage session': [{ ...u1, storage_session_id: 'zzzzzzzzzzzzzzzzzzzzz' }],
  'unknown file id': [{ ...u1, id: 'zzzzzzzzzzzzzzzzzzzzz' }],
  'duplicate destination': [u1, u1],
  'dest conflict prefix': [u1, { ...u0, name: 'b.txt/x' }],
  'dest = entry file': [{ ...u1, name: 'script.sh' }],
  'extra fields tolerated': [{ ...u1, inherited: true, modified_from: { id: 'x' }, path: '/x' }],
}))
  await rec('ref ' + n, ex('echo hi', f));
await rec('ref other user', ex('echo hi', [u1], { sub: 'user-2' }));
await rec('ref other tenant', ex('echo hi', [u1], { tenant_id: 't2' }));
// outputs
const o1 = await rec(
  'outputs mixed',
  ex(
    `mkdir -p a/b/c empty .hid/x e2/.cache && echo 1 > a/b/c/f.txt && echo 2 > .hid/x/g.txt && echo 3 > .env && echo 4 > noext && echo 5 > Dockerfile && echo 6 > x.weird && echo 7 > img.PNG && echo 8 > m.mp4 && echo 9 > data.tar.gz && ln -s /etc/passwd link.txt && echo z > .gitignore && echo w > t.xyz.json && : > zero.txt && echo q > 'sp ace é.txt'; mkfifo p.txt; echo {} > _ptc_history.json; echo k > _ptc_other.json`,
  ),
);
const q = '?' + new URLSearchParams({ kind: 'user', id: 'user-1' });
for (const f of o1.body.files ?? [])
  await rec('  download ' + f.name, req('GET', `/download/${f.storage_session_id}/${f.id}${q}`, { headers: auth() }));
await rec(
  'outputs list normalized',
  req('GET', `/files/${o1.body.session_id}${q}&detail=normalized`, { headers: auth() }),
);
const o2 = await ex('for i in $(seq 1 60); do echo $i > f$i.txt; done');
o2.body.filesCount = o2.body.files?.length;
o2.body.files = o2.body.files?.slice(0, 2);
await rec('outputs 60 files', Promise.resolve(o2));
await rec('output >10MB skipped', ex('head -c 10000001 /dev/zero > big.txt; head -c 10000000 /dev/zero > ok.txt'));
await rec(
  'outputs depth',
  ex('mkdir -p 1/2/3/4/5/6/7/8/9/10/11; echo x > 1/2/3/4/5/6/7/8/9/d10.txt; echo y > 1/2/3/4/5/6/7/8/9/10/d11.txt'),
);
await rec('entry file modified by code', ex('echo "# changed" >> script.sh'));
await rec('outputs on failure exit 1', ex('echo x > kept.txt; exit 1'));
await rec('outputs on timeout', ex('echo x > kept2.txt; sleep 30'));
const t1 = await rec('turn1 make', ex('mkdir -p out; echo v1 > out/r.csv; mkdir keepme'));
const g = t1.body.files?.map((f) => ({
  id: f.id,
  resource_id: f.id,
  name: f.name,
  storage_session_id: f.storage_session_id,
  kind: 'user',
}));
const t2 = await rec('turn2 read+modify (refs as client sends)', ex('ls -la out keepme; echo v2 >> out/r.csv', g));
await rec('turn2 unchanged', ex('cat out/r.csv', g));
await rec(
  'py output',
  ex(
    'open("/mnt/data/x.txt","w").write("hi"); open("rel.json","w").write("{}"); open("/tmp/no.txt","w").write("n")',
    undefined,
    {},
    'py',
  ),
);
save();
