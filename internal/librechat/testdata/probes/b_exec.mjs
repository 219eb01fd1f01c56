import { req, auth, recorder } from './lib.mjs';
const { rec, save } = recorder((process.env.OUT ?? '.') + '/B-exec.json');
const ex = (b, t) => req('POST', '/exec', { body: b, headers: auth(), timeout: t ?? 40000 });
for (const l of [
  'python',
  'py',
  'PY',
  'javascript',
  'js',
  'bun',
  'bun-js',
  'node',
  'nodejs',
  'node-js',
  'typescript',
  'ts',
  'bash',
  'sh',
]) {
  const py = /^py/i.test(l),
    sh = ['bash', 'sh'].includes(l);
  await rec('lang ' + l, ex({ lang: l, code: py ? 'print("ok")' : sh ? 'echo ok' : 'console.log("ok")' }));
}
for (const l of ['c', 'cpp', 'java', 'php', 'rs', 'go', 'd', 'f90', 'r', 'ruby', ''])
  await rec('lang unsupported ' + l, ex({ lang: l, code: 'x' }));
await rec('lang number', ex({ lang: 1, code: 'x' }, 3000));
await rec('lang missing', ex({ code: 'x' }, 3000));
await rec('code missing py', ex({ lang: 'py' }));
await rec('code missing bash', ex({ lang: 'bash' }));
await rec('code empty bash', ex({ lang: 'bash', code: '' }));
await rec('code number bash', ex({ lang: 'bash', code: 5 }));
await rec('args', ex({ lang: 'py', code: 'import sys;print(sys.argv)', args: ['a', 'b c'] }));
await rec('args not strings', ex({ lang: 'bash', code: 'echo $1', args: [1] }));
await rec('args string', ex({ lang: 'bash', code: 'echo $1', args: 'x' }));
await rec('stdin is newline', ex({ lang: 'py', code: 'import sys;print(repr(sys.stdin.read()))' }));
await rec('stdin field ignored', ex({ lang: 'py', code: 'import sys;print(repr(sys.stdin.read()))', stdin: 'hello' }));
await rec(
  'cwd+env',
  ex({
    lang: 'bash',
    code: 'pwd; ls -la; env | sort | cut -d= -f1 | tr "\\n" " "; echo; echo HOME=$HOME; id -u; basename $0',
  }),
);
await rec('exit code 3', ex({ lang: 'bash', code: 'echo out; echo err >&2; exit 3' }));
await rec('py exception', ex({ lang: 'py', code: 'raise ValueError("boom")' }));
await rec('kill -9 self', ex({ lang: 'bash', code: 'kill -9 $$' }));
await rec('segv self', ex({ lang: 'bash', code: 'kill -SEGV $$' }));
const big = await ex({ lang: 'bash', code: 'head -c 200000 /dev/zero | tr "\\0" a; echo END; sleep 1; echo more' });
if (big.body?.stdout)
  big.body.stdout = `<${big.body.stdout.length} chars, tail ${JSON.stringify(big.body.stdout.slice(-10))}>`;
await rec('stdout 200k', Promise.resolve(big));
const bigE = await ex({ lang: 'bash', code: 'head -c 200000 /dev/zero | tr "\\0" e >&2; echo DONE' });
if (bigE.body?.stderr)
  bigE.body.stderr = `<${bigE.body.stderr.length} chars, tail ${JSON.stringify(bigE.body.stderr.slice(-60))}>`;
await rec('stderr 200k', Promise.resolve(bigE));
await rec('utf8 output', ex({ lang: 'py', code: 'print("日本 é 😀")' }));
await rec('invalid utf8', ex({ lang: 'bash', code: "printf 'a\\xff\\xfeb\\n'" }));
await rec('NUL bytes', ex({ lang: 'bash', code: "printf 'a\\0b\\n'" }));
await rec('timeout 15s', ex({ lang: 'bash', code: 'echo start; sleep 30' }));
await rec(
  'unknown body fields',
  ex({
    lang: 'bash',
    code: 'echo hi',
    session_id: 'x',
    timeout: 1,
    entity_id: 'e',
    baseUrl: 'x',
    intent: 'y',
    run_timeout: 5,
  }),
);
await rec('user_id in body', ex({ lang: 'bash', code: 'echo hi', user_id: 'other' }));
await rec('runtime_session_hint stateless', ex({ lang: 'bash', code: 'echo hi', runtime_session_hint: 'bad hint!!' }));
await rec('matplotlib marker', ex({ lang: 'py', code: '# import matplotlib\nprint("x")' }));
await rec('background process', ex({ lang: 'bash', code: '(sleep 3; echo late) & echo now' }));
save();
