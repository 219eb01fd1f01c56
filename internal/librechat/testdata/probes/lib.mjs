// Requests of the probes a to d, whose answers of the reference server are in ../reference.
//
//   OUT=FOLDER BASE=http://127.0.0.1:PORT/v1 KEY=FILE node a_auth.mjs
//
// KEY has an Ed25519 key. OUT gets the answers.
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
export const BASE = process.env.BASE ?? 'http://127.0.0.1:13112/v1';
const key = crypto.createPrivateKey(fs.readFileSync(process.env.KEY));
const b64 = (v) => Buffer.from(typeof v === 'string' ? v : JSON.stringify(v)).toString('base64url');
export function jwt(over = {}, hdr = {}) {
  const now = Math.floor(Date.now() / 1000);
  const c = {
    iss: 'librechat',
    aud: 'codeapi',
    sub: 'user-1',
    iat: now,
    nbf: now,
    exp: now + 300,
    jti: crypto.randomUUID(),
    tenant_id: 'legacy',
    role: 'USER',
    principal_source: 'librechat_jwt',
    auth_context_hash: 'h1',
    ...over,
  };
  for (const k of Object.keys(c)) if (c[k] === undefined) delete c[k];
  const si = `${b64({ alg: 'EdDSA', typ: 'JWT', kid: 'lc-codeapi-2026-05', ...hdr })}.${b64(c)}`;
  return `${si}.${crypto.sign(null, Buffer.from(si), key).toString('base64url')}`;
}
export const auth = (o) => ({ Authorization: `Bearer ${jwt(o)}` });
// raw request: body may be Buffer/string/object
export function req(method, path, { headers = {}, body, timeout = 25000, base = BASE } = {}) {
  return new Promise((resolve) => {
    const u = new URL(path.startsWith('http') ? path : base + path);
    let buf;
    const h = { ...headers };
    if (body !== undefined) {
      buf = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
      h['Content-Type'] ??= 'application/json';
      h['Content-Length'] = buf.length;
    }
    const r = http.request(u, { method, headers: h, agent: false }, (res) => {
      const cs = [];
      res.on('data', (c) => cs.push(c));
      res.on('end', () => {
        const t = Buffer.concat(cs);
        let j;
        try {
          j = JSON.parse(t.toString());
        } catch {}
        const hd = { ...res.headers };
        resolve({
          status: res.statusCode,
          headers: hd,
          body: j ?? t.toString('utf8').slice(0, 2000),
          bytes: t.length,
          sha256: j === undefined ? crypto.createHash('sha256').update(t).digest('hex') : undefined,
        });
      });
    });
    r.setTimeout(timeout, () => {
      r.destroy();
      resolve({ status: 'TIMEOUT', timeout });
    });
    r.on('error', (e) => resolve({ status: 'ERR', error: e.message }));
    if (buf) r.write(buf);
    r.end();
  });
}
export function multipart(parts) {
  const B = '----probe' + crypto.randomBytes(6).toString('hex');
  const out = [];
  for (const p of parts) {
    out.push(
      Buffer.from(
        `--${B}\r\nContent-Disposition: form-data; name="${p.name}"${p.filename !== undefined ? `; filename="${p.filename}"` : ''}${p.extra ?? ''}\r\n${p.type ? `Content-Type: ${p.type}\r\n` : ''}\r\n`,
        'utf8',
      ),
      Buffer.from(p.value ?? ''),
      Buffer.from('\r\n'),
    );
  }
  out.push(Buffer.from(`--${B}--\r\n`));
  return { body: Buffer.concat(out), headers: { 'Content-Type': `multipart/form-data; boundary=${B}` } };
}
export function recorder(file) {
  const rows = [];
  return {
    async rec(name, p, note) {
      const t = Date.now();
      const r = await p;
      rows.push({ name, note, ms: Date.now() - t, ...r });
      const short = typeof r.body === 'object' ? JSON.stringify(r.body) : String(r.body);
      console.log(`${String(r.status).padEnd(7)} ${name.padEnd(44)} ${short?.slice(0, 260)}`);
      return r;
    },
    save() {
      fs.writeFileSync(file, JSON.stringify(rows, null, 2));
    },
  };
}
