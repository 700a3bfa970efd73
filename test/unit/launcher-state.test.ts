import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
