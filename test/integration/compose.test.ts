import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeCertificates } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { type LauncherUnderTest, launcherUnderTest } from '../support/launcher.js';

// Each start and stop takes a second or two, on a busy machine several.

let launcher: LauncherUnderTest;
let folder: string;
let environment: NodeJS.ProcessEnv;
let base: number;

async function listen(port: number): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function close(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}

const portico = (...args: string[]) => launcher.portico(...args);
const control = (verb: string, ...names: string[]) => launcher.control(verb, ...names);
const start = (...args: string[]) => launcher.start(...args);
const stop = () => launcher.portico('stop');
const stateFile = (...names: string[]) => launcher.stateFile(...names);
const connection = () => launcher.connection();
const command = (words: string[], timeoutMs?: number) => launcher.command(words, timeoutMs);
const pidOf = (name: string) => Number(readFileSync(stateFile('run', `${name}.pid`), 'utf8').split(' ')[0]);
const isAlive = (pid: number) =>
  existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

/** Every process whose environment or command line names this file's folder. */
function processesOfOurs(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        const said =
          readFileSync(`/proc/${name}/cmdline`, 'utf8') + readFileSync(`/proc/${name}/environ`, 'utf8');
        return said.includes(folder);
      } catch {
        return false;
      }
    })
    .map(Number);
}

beforeAll(async () => {
  launcher = await launcherUnderTest();
  ({ folder, environment, base } = launcher);
});

afterEach(async () => {
  await stop();
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('npm start -- --detach', () => {
  it('brings up what the configuration needs, shows how to reach it, and keeps secrets to the owner', async () => {
    const { code, out } = await start('--detach');
    expect([code, out]).toEqual([0, expect.stringContaining(`http://127.0.0.1:${base + 9}/kv`)]);
    expect(await command(['SET', 'greeting', 'hello'])).toEqual({ result: 'OK' });
    expect(await command(['GET', 'greeting'])).toEqual({ result: 'hello' });
    expect(out).toContain(connection().PORTICO_KV_TOKEN);
    for (const file of ['secrets.env', 'connection.env', 'run/redis.conf']) {
      expect([file, statSync(stateFile(file)).mode & 0o777]).toEqual([file, 0o600]);
    }
    const password = new URL(connection().PORTICO_REDIS_URL ?? '').password;
    expect(password.length).toBeGreaterThan(40);
    for (const pid of processesOfOurs()) {
      expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.toContain(password);
    }
    expect(existsSync(stateFile('run', 'kafka.pid'))).toBe(false);
  });

  it('says so when it runs already, and changes nothing', async () => {
    await start('--detach');
    const before = [pidOf('gateway'), pidOf('redis'), readFileSync(stateFile('secrets.env'), 'utf8')];
    const { code, out } = await start();
    expect([code, out]).toEqual([0, expect.stringContaining('It runs already; nothing was changed.')]);
    expect([pidOf('gateway'), pidOf('redis'), readFileSync(stateFile('secrets.env'), 'utf8')]).toEqual(
      before,
    );
  });

  it('speaks of what runs although it is called with other variables, and names another configuration', async () => {
    await start('--detach');
    const before = connection();
    environment.PORTICO_HTTP_PORT = String(base + 8);
    try {
      const { code, out } = await start('--detach');
      expect([code, out]).toEqual([0, expect.stringContaining(`http://127.0.0.1:${base + 9}/kv`)]);
      expect(connection()).toEqual(before);
      expect(out).toContain('Not taken over: PORTICO_HTTP_PORT. It runs with other values');
      const other = await portico('start', '--detach', '--config', join(folder, 'other.yaml'));
      expect([other.code, other.out]).toEqual([
        1,
        expect.stringMatching(/it runs already, with .*portico\.yaml/),
      ]);
    } finally {
      environment.PORTICO_HTTP_PORT = String(base + 9);
    }
  });

  it('writes addresses so that a shell reads them back', async () => {
    environment.PORTICO_DATABASE_URL = "postgres://u:p'w@127.0.0.1/x?a=1&b=$(echo 2)";
    try {
      expect(await start('--detach')).toMatchObject({ code: 0 });
      const source = 'set -a; . "$0"; printf %s "$PORTICO_DATABASE_URL"';
      const { stdout } = await promisify(execFile)('sh', ['-c', source, stateFile('connection.env')]);
      expect(stdout).toBe(environment.PORTICO_DATABASE_URL);
    } finally {
      delete environment.PORTICO_DATABASE_URL;
    }
  });

  it('brings a killed backend back, with its data, and leaves the gateway alone', async () => {
    await start('--detach');
    const gateway = pidOf('gateway');
    await command(['SET', 'kept', 'yes']);
    await control('stop', 'redis');
    await control('start', 'redis');
    await control('kill', 'redis');
    const { out } = await start('--detach');
    expect(out).toContain('what had died is up again');
    expect(pidOf('gateway')).toBe(gateway);
    await eventually(async () => expect(await command(['GET', 'kept'])).toEqual({ result: 'yes' }));
  });

  it('brings a killed gateway back and leaves the backend alone', async () => {
    await start('--detach');
    const redis = pidOf('redis');
    process.kill(pidOf('gateway'), 'SIGKILL');
    const { code, out } = await start('--detach');
    expect([code, out]).toEqual([0, expect.stringContaining('runs already')]);
    expect(pidOf('redis')).toBe(redis);
    expect(await command(['PING'])).toEqual({ result: 'PONG' });
  });

  it('goes by the start time of a process, not by its number alone', async () => {
    const foreign = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    try {
      await mkdir(stateFile('run'), { recursive: true });
      for (const name of ['redis', 'gateway', 'launcher']) {
        writeFileSync(stateFile('run', `${name}.pid`), `${foreign.pid} 12345\n`);
      }
      expect((await start('--detach')).code).toBe(0);
      expect(pidOf('redis')).not.toBe(foreign.pid);
      await stop();
      expect(isAlive(foreign.pid as number)).toBe(true);
    } finally {
      foreign.kill('SIGKILL');
    }
  });

  it('names a taken port, who has it and what to do, and starts nothing', async () => {
    const thief = await listen(base + 1);
    try {
      const { code, out } = await start('--detach');
      expect(code).toBe(1);
      expect(out).toContain(`port ${base + 1}, which is for redis, is taken by`);
      expect(out).toContain(`(process ${process.pid})`);
      expect(out).toContain('PORTICO_PORT_BASE');
      expect(processesOfOurs()).toEqual([]);
    } finally {
      await close(thief);
    }
  });

  it('ends with 1 when a service is not there, tells its operator alone why, and the next start fixes it', async () => {
    const ready = async (headers: Record<string, string> = {}) => {
      const reply = await fetch(`http://127.0.0.1:${base + 9}/readyz`, { headers });
      return { status: reply.status, text: await reply.text() };
    };
    await mkdir(stateFile('data'), { recursive: true });
    await rm(stateFile('data/redis'), { recursive: true, force: true });
    writeFileSync(stateFile('data/redis'), 'no folder');
    let gateway: number;
    try {
      const { code, out } = await start('--detach');
      expect([code, out]).toEqual([1, expect.stringContaining('NOT AVAILABLE')]);
      gateway = pidOf('gateway');
      expect(readFileSync(stateFile('logs/gateway.log'), 'utf8')).toContain('data/redis');
      expect(await ready()).toEqual({
        status: 503,
        text: '{"status":"down","services":{"kv":{"status":"down"}}}',
      });
      const operator = { authorization: `Bearer ${connection().PORTICO_METRICS_TOKEN}` };
      expect(await ready(operator)).toEqual({ status: 503, text: expect.stringContaining('data/redis') });
      expect(JSON.stringify(await command(['PING']))).not.toContain('data');
    } finally {
      await rm(stateFile('data/redis'));
    }
    const { code, out } = await start('--detach');
    expect([code, out]).toEqual([0, expect.stringContaining('what had died is up again')]);
    expect(out).not.toMatch(/NOT (AVAILABLE|UP YET)/);
    expect(pidOf('gateway')).toBe(gateway);
    expect(await command(['PING'])).toEqual({ result: 'PONG' });
    expect((await ready()).status).toBe(200);
  });

  it('does not start a gateway on a taken port, and leaves nothing behind', async () => {
    const thief = await listen(base + 9);
    try {
      const { code, out } = await start('--detach');
      expect([code, out]).toEqual([1, expect.stringContaining(`port ${base + 9}, which is for the gateway`)]);
      expect(processesOfOurs()).toEqual([]);
    } finally {
      await close(thief);
    }
  });

  it('refuses a bad configuration with all reasons before it starts anything', async () => {
    writeFileSync(join(folder, 'bad.yaml'), 'http:\n  prot: 1\nkv:\n  enabled: maybe\n');
    const { code, out } = await portico('start', '--detach', '--config', join(folder, 'bad.yaml'));
    expect(code).toBe(78);
    expect(out).toMatch(/http\.prot.*port/);
    expect(out).toContain('kv.enabled');
    expect(processesOfOurs()).toEqual([]);
  });
});

describe('npm start in the foreground', () => {
  let launcher: ChildProcess;
  let said = '';

  async function startInForeground(config = 'portico.yaml'): Promise<void> {
    said = '';
    const args = ['compose/portico.mjs', 'start', '--config', join(folder, config)];
    launcher = spawn(process.execPath, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    const ready = new Promise<void>((resolve, reject) => {
      for (const stream of [launcher.stdout, launcher.stderr]) {
        stream?.setEncoding('utf8').on('data', (chunk: string) => {
          said += chunk;
          if (said.includes('Ctrl-C stops it.')) resolve();
        });
      }
      launcher.once('exit', (code) => reject(new Error(`the launcher ended with ${code}: ${said}`)));
    });
    await ready;
  }

  it.each(['SIGINT', 'SIGHUP'] as const)(
    'ends all that it started on Ctrl-C or with its terminal (%s)',
    async (signal) => {
      await startInForeground();
      const pids = [pidOf('gateway'), pidOf('redis')];
      const exit = once(launcher, 'exit');
      launcher.kill(signal);
      expect((await exit)[0]).toBe(0);
      expect(pids.map(isAlive)).toEqual([false, false]);
      expect(processesOfOurs()).toEqual([]);
    },
  );

  it('waits for a gateway that speaks TLS; killed without warning, leaves what npm stop still finds', async () => {
    const { serverCert, serverKey } = await makeCertificates(join(folder, 'certificates'));
    const config = readFileSync(join(folder, 'portico.yaml'), 'utf8');
    writeFileSync(
      join(folder, 'tls.yaml'),
      `${config}\nhttp: { tls: { cert: ${serverCert}, key: ${serverKey} } }\n`,
    );
    await startInForeground('tls.yaml');
    expect(said).toContain('Portico: https://');
    expect((await portico('status')).code).toBe(0);
    const pids = [pidOf('gateway'), pidOf('redis')];
    const exit = once(launcher, 'exit');
    launcher.kill('SIGKILL');
    await exit;
    expect(await stop()).toEqual({ code: 0, out: expect.stringContaining('Stopped.') });
    expect(pids.map(isAlive)).toEqual([false, false]);
    expect(processesOfOurs()).toEqual([]);
  });
});

describe('portico status and doctor', () => {
  it('say what runs and answers, by their exit codes, too', async () => {
    expect(await portico('status')).toEqual({ code: 3, out: 'Nothing runs.\n' });
    await start('--detach');
    const well = await portico('status');
    expect([well.code, well.out]).toEqual([0, expect.stringMatching(/^gateway +ready/m)]);
    expect((await portico('doctor')).code).toBe(0);
    await control('kill', 'redis');
    const ill = await portico('status');
    expect([ill.code, ill.out]).toEqual([1, expect.stringMatching(/^redis +down/m)]);
    const found = await portico('doctor');
    expect([found.code, found.out]).toEqual([1, expect.stringMatching(/^WRONG redis +down\n/m)]);
    expect(found.out).toContain(stateFile('logs/redis.log'));
    expect((await start('--detach')).code).toBe(0);
    expect((await portico('status')).code).toBe(0);
  });

  it('name a port that another program has', async () => {
    const thief = await listen(base + 9);
    try {
      const { code, out } = await portico('doctor');
      expect([code, out]).toEqual([
        1,
        expect.stringMatching(new RegExp(`^WRONG ports .*${base + 9} \\(the gateway\\) is taken by`, 'm')),
      ]);
    } finally {
      await close(thief);
    }
  });
});

describe('the state folder', () => {
  it('that cannot be made ends a start in one sentence, before anything is changed', async () => {
    writeFileSync(join(folder, 'file'), '');
    const { PORTICO_STATE_DIR } = environment;
    environment.PORTICO_STATE_DIR = join(folder, 'file/state');
    try {
      const { code, out } = await start('--detach');
      expect(code).toBe(1);
      expect(out).toMatch(
        /^Portico did not start: .*\/file cannot be written .* set PORTICO_STATE_DIR .*\n$/,
      );
    } finally {
      environment.PORTICO_STATE_DIR = PORTICO_STATE_DIR;
    }
  });
});

describe('npm stop', () => {
  it('has nothing to do when nothing runs', async () => {
    expect(await stop()).toEqual({ code: 0, out: expect.stringMatching(/Nothing (runs|ran)\.\n$/) });
  });
});

describe('a paused backend', () => {
  it('keeps its connections and answers nothing until it is resumed', async () => {
    await start('--detach');
    await control('pause', 'redis');
    expect((await control('status')).out).toMatch(/"redis": \{\s+"running": true,\s+"paused": true/);
    await expect(command(['PING'], 500)).rejects.toThrow('timeout');
    await control('resume', 'redis');
    await eventually(async () => expect(await command(['PING'])).toEqual({ result: 'PONG' }));
  });
});
