import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portico-state-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs lines of a script, in the checkout's folder, on the state that lies in `folder`; what it logs last is JSON. */
function onState(script: string): Promise<unknown> {
  const { PORTICO_PORT_BASE: _, ...others } = process.env;
  const env = { ...others, PORTICO_STATE_DIR: folder, at: folder };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['--input-type=module', '-e', script], { env }, (error, out) => {
      if (error !== null) reject(error);
      else resolve(new Response(out).json());
    });
  });
}

function put(path: string, text: string): void {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), text);
}

const keptBy = (name: string) => `
  import { keptPrograms } from './compose/native/postgres-clusters.mjs';
  import { profile } from './compose/state/profile.mjs';
  console.log(JSON.stringify(keptPrograms(profile('${name}'))));`;

describe('programs that old Postgres data need', () => {
  const oldTree = 'postgres-17.5-01234567';
  beforeEach(() => put(`programs/${oldTree}/usr/lib/postgresql/17/bin/postgres`, ''));

  it.each([
    ['dev', 'data'],
    ['test', 'test/data'],
  ])('are kept for profile %s where no Postgres of ours was ever brought', async (name, data) => {
    expect(await onState(keptBy(name))).toEqual([]);
    put(`${data}/postgres-17/PG_VERSION`, '17\n');
    expect(await onState(keptBy(name))).toEqual([oldTree]);
  });

  it('may go once their data are copied', async () => {
    put('data/postgres-17/PG_VERSION', '17\n');
    put('programs/present.json', '{"postgres":{"wanted":"","tree":"","version":"18.6"}}');
    expect(await onState(keptBy('dev'))).toEqual([oldTree]);
    put('data/postgres-18/PG_VERSION', '18\n');
    expect(await onState(keptBy('dev'))).toEqual([]);
  });
});

it('takes the default ports where a full disk has left the note of them empty', async () => {
  put('run/port-base', '');
  const script =
    "import { profile } from './compose/state/profile.mjs'; console.log(profile('dev').ports.redis);";
  expect(await onState(script)).toBe(18071);
});

describe('a lock', () => {
  const attempt = (mayInterrupt: boolean) => `
    import { withLock } from './compose/processes/lock.mjs';
    import { catchSignals } from './compose/processes/interruption.mjs';
    import { readProcess } from './compose/processes/process-table.mjs';
    import { rmSync, writeFileSync } from 'node:fs';
    const lock = process.env.at + '/lock';
    writeFileSync(lock, process.pid + ' ' + readProcess(process.pid).start);
    catchSignals();
    process.emit('SIGINT');
    const work = withLock(lock, async () => 'done', () => setTimeout(() => rmSync(lock), 50), ${mayInterrupt});
    console.log(JSON.stringify(await work.catch((error) => error.message)));`;

  it('is waited for by whoever ends what he started, although the user wants out', async () => {
    expect(await onState(attempt(false))).toBe('done');
    expect(await onState(attempt(true))).toBe('interrupted');
  });

  it('of what is installed into the checkout is one for all state folders', async () => {
    const script = `
      import { checkoutLock } from './compose/state/profile.mjs';
      console.log(JSON.stringify(checkoutLock));`;
    expect(dirname((await onState(script)) as string)).toBe(resolve('.'));
  });

  it('that cannot be read is said at once', async () => {
    mkdirSync(join(folder, 'lock'));
    const script = `import { withLock } from './compose/processes/lock.mjs';
      console.log(JSON.stringify(await withLock(process.env.at + '/lock', async () => '').catch(({ code }) => code)));`;
    expect(await onState(script)).toBe('EISDIR');
  });
});

it('fetches a package again that an earlier start left with another content', async () => {
  put('package.deb', 'rotten');
  const script = `
    import { createServer } from 'node:http';
    import { createHash } from 'node:crypto';
    import { download } from './compose/native/programs/download.mjs';
    const body = 'fresh.';
    const server = createServer((_, answer) => answer.end(body)).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const sha256 = createHash('sha256').update(body).digest('hex');
    const urls = ['http://127.0.0.1:' + server.address().port + '/'];
    await download({ urls, file: process.env.at + '/package.deb', size: body.length, sha256 }, () => undefined);
    console.log('true');
    process.exit();`;
  expect(await onState(script)).toBe(true);
  expect(readFileSync(join(folder, 'package.deb'), 'utf8')).toBe('fresh.');
  expect(existsSync(join(folder, 'package.deb.part'))).toBe(false);
});

it('gives a backend a locale that is there, whatever the shell names', async () => {
  const script = `
    import { mkdirSync, readFileSync } from 'node:fs';
    import { killBackend, startBackend } from './compose/native/backend.mjs';
    import { makeFolders, profile } from './compose/state/profile.mjs';
    process.env.LC_ALL = 'xx_YY.UTF-8';
    const p = profile('dev');
    makeFolders(p);
    let seen = '';
    const sleeper = {
      name: 'sleeper',
      ports: [],
      processes: async () => [{ name: 'sleeper', file: 'sleep', args: ['60'], cwd: '/' }],
      ready: async () => {
        const pid = readFileSync(p.run + '/sleeper.pid', 'utf8').split(' ')[0];
        seen = readFileSync('/proc/' + pid + '/environ', 'utf8').split('\\0').find((line) => line.startsWith('LC_ALL'));
        // none while it becomes the program
        if (seen === undefined) throw new Error('no environment yet');
      },
    };
    await startBackend({ p, secrets: {} }, sleeper, () => undefined);
    await killBackend({ p }, sleeper);
    console.log(JSON.stringify(seen));`;
  expect(await onState(script)).toBe('LC_ALL=C.UTF-8');
});

describe('the name of a folder above', () => {
  const asked = (folder: string) => `
    import { demandFolderName } from './compose/native/folder-names.mjs';
    const wrong = ['redis', 'postgres', 'kafka', 'rabbitmq'].flatMap((name) => {
      try { demandFolderName(name, ${JSON.stringify(folder)}); return []; } catch (error) { return [[name, error.message]]; }
    });
    console.log(JSON.stringify(wrong));`;

  it.each([
    ['/home/müller/C# & (x) 100% + =@!~^|<>/пример', []],
    ['/home/a:b', ['redis', 'postgres', 'kafka', 'rabbitmq']],
    ['/home/a;b', ['redis', 'postgres', 'kafka', 'rabbitmq']],
    ['/home/a\tb', ['redis', 'postgres', 'kafka', 'rabbitmq']],
    ['/home/$a', ['postgres']],
    ['/home/projects, old', ['kafka']],
    ['/home/projects [old]', ['rabbitmq']],
  ])('%j is refused in one sentence by those that would not run below it', async (name, refusing) => {
    const found = (await onState(asked(name))) as [string, string][];
    expect(found.map(([backend]) => backend)).toEqual(refusing);
    for (const [, words] of found)
      expect(words).toMatch(/^\w+ does not run below a folder with .*PORTICO_STATE_DIR$/);
  });
});

describe('a secrets.env that was edited by hand', () => {
  const file = () => join(folder, 'secrets.env');
  const asked = `
    import { demandSecrets, secretsOf } from './compose/state/secrets.mjs';
    import { makeFolders, profile } from './compose/state/profile.mjs';
    const p = profile('dev');
    makeFolders(p);
    const secrets = secretsOf(p);
    let words = '';
    try { demandSecrets(p); } catch (error) { words = error.message; }
    console.log(JSON.stringify({ secrets, words }));`;
  const read = () => onState(asked) as Promise<{ secrets: Record<string, string>; words: string }>;

  it('is read as shells and Compose read it', async () => {
    const { secrets } = await read();
    const written = readFileSync(file(), 'utf8');
    put(
      'secrets.env',
      written.replace(/^(\w+)=(.*)$/gm, (_, name, value) => `${name}= "${value}" \r`),
    );
    expect(await read()).toEqual({ secrets, words: '' });
  });

  it.each([
    ['PORTICO_POSTGRES_PASSWORD', "it's"],
    ['PORTICO_REDIS_PASSWORD', 'p@ss/word'],
    ['PORTICO_RABBITMQ_PASSWORD', 'pässword'],
    ['PORTICO_VECTOR_TOKEN', 'two words'],
  ])('is refused in one sentence where %s is %s, and stays', async (name, value) => {
    await read();
    const edited = readFileSync(file(), 'utf8').replace(new RegExp(`^${name}=.*$`, 'm'), `${name}=${value}`);
    put('secrets.env', edited);
    const { words } = await read();
    expect(words).toContain(`${name} in ${file()} cannot be used: `);
    expect(words).not.toContain(value);
    expect(readFileSync(file(), 'utf8')).toBe(edited);
  });
});

it('takes a gateway whose note a disk has lost for one that has to be started again', async () => {
  put('run/gateway.json', '{"report":');
  const script = `
    import { runningGateway } from './compose/launcher/gateway.mjs';
    import { writePidFile } from './compose/processes/processes.mjs';
    import { profile } from './compose/state/profile.mjs';
    const p = profile('dev');
    writePidFile(p.run + '/gateway.pid', process.pid);
    console.log(JSON.stringify(runningGateway(p) ?? null));`;
  expect(await onState(script)).toBeNull();
});

describe('before anything is changed, one sentence says', () => {
  const asked = (work: string) => `
    import { symlinkSync, writeFileSync } from 'node:fs';
    import { dirname, join, resolve } from 'node:path';
    const folder = process.env.at;
    const about = async (place, PATH = process.env.PATH) => {
      Object.assign(process.env, { PORTICO_STATE_DIR: place, PATH });
      const m = await import('./compose/launcher/preflight.mjs');
      try { m.demandStateFolder(); await m.demandNative(['redis']); return ''; } catch (error) { return error.message; }
    };
    ${work}`;

  it.each([
    [
      'that the folder is a file',
      "writeFileSync(at, '');",
      /\/at cannot be written \(it is no folder\): set PORTICO_STATE_DIR /,
    ],
    [
      'the same of one above',
      "writeFileSync(at, ''); at += '/state';",
      /\/at cannot be written \(it is no folder\)/,
    ],
    [
      'that a link leads nowhere',
      "symlinkSync('/nowhere/at/all', at);",
      /\/at cannot be written \(it is a link that leads nowhere\)/,
    ],
    [
      'that programs do not run there',
      "at = '/proc/sys/kernel';",
      /^\/proc\/sys\/kernel (cannot be written|is on a disk that runs no programs)/,
    ],
    [
      'what is missing on PATH',
      "PATH = '/nowhere';",
      /^no tar with dpkg-deb or xz is on PATH|^setpriv .* is missing/,
    ],
  ])('%s', async (_, work, words) => {
    const script = asked(
      `let at = join(folder, 'at'); let PATH; ${work} console.log(JSON.stringify(await about(at, PATH)));`,
    );
    expect(await onState(script)).toMatch(words);
  });

  it('which port is wanted twice, or is taken, among all that the gateway listens on', async () => {
    const script = `
      import { createServer } from 'node:net';
      import { demandPorts } from './compose/launcher/preflight.mjs';
      import { profile } from './compose/state/profile.mjs';
      const p = profile('dev');
      const about = (ports) => demandPorts(p, 'native', ['redis'], ports).then(() => '', (error) => error.message);
      const server = createServer().listen(0, '127.0.0.1');
      await new Promise((resolve) => server.once('listening', resolve));
      const { port } = server.address();
      console.log(JSON.stringify([port, await about([p.ports.redis]), await about([port])]));
      server.close();`;
    const [port, twice, taken] = (await onState(script)) as [number, string, string];
    expect(twice).toMatch(/^port 18071, which is for the gateway, is that of redis: .*PORTICO_HTTP_PORT/);
    expect(taken).toMatch(new RegExp(`^port ${port}, which is for the gateway, is taken by node \\(process`));
  });

  it('which variable is no port', async () => {
    const script = `
      import { profile } from './compose/state/profile.mjs';
      process.env.PORTICO_HTTP_PORT = '80a';
      try { profile('dev'); } catch (error) { console.log(JSON.stringify(error.message)); }`;
    expect(await onState(script)).toBe("PORTICO_HTTP_PORT must be a whole number from 0 to 65535, not '80a'");
  });
});

it('says in one sentence which part of the state is closed to this user', async () => {
  put('data/redis/values.aof', '');
  put('secrets.env', '');
  const [user, isRoot] = [54_321, process.getuid?.() === 0];
  chmodSync(join(folder, 'data/redis'), isRoot ? 0o700 : 0o000);
  if (isRoot) for (const path of ['', 'data', 'secrets.env']) chownSync(join(folder, path), user, user);
  const script = `
    import { demandAccess } from './compose/state/access.mjs';
    import { profile } from './compose/state/profile.mjs';
    if (${isRoot}) process.setuid(${user});
    try { demandAccess(profile('dev')); } catch (error) { console.log(JSON.stringify(error.message)); }`;
  expect(await onState(script)).toMatch(
    isRoot
      ? /data\/redis belongs to user root, and this user may not change it, since root has .* \(chown -R\)$/
      : /data\/redis is closed to its owner: chmod u\+rwX /,
  );
  chmodSync(join(folder, 'data/redis'), 0o700);
});

it('closes a folder of data to other users', async () => {
  put('redis/values.aof', '');
  const script = `
    import { chmodSync, statSync } from 'node:fs';
    import { giveData } from './compose/native/unprivileged.mjs';
    const folder = process.env.at + '/redis';
    chmodSync(folder, 0o755);
    giveData({ uid: process.getuid(), gid: process.getgid(), prefix: [] }, folder);
    console.log(statSync(folder).mode & 0o777);`;
  expect(await onState(script)).toBe(0o700);
});

it('gives npm a place for what it fetches where the home folder is none', async () => {
  put('no-folder', '');
  const script = `
    import { npmPlaces } from './compose/install/npm-places.mjs';
    delete process.env.npm_config_cache;
    const places = [];
    for (const home of ['no-folder/home', 'home']) {
      process.env.HOME = process.env.at + '/' + home;
      places.push(npmPlaces());
    }
    console.log(JSON.stringify(places));`;
  expect(await onState(script)).toEqual([
    { HOME: join(folder, 'no-folder/home'), npm_config_cache: join(folder, 'npm-cache') },
    {},
  ]);
});
