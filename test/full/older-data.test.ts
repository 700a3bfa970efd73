import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { stringify } from 'yaml';
import { services } from '../../src/services/index.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';

/** What the launcher does with data that an older version of a backend has written, in a folder of this file's own. */
const run = promisify(execFile);
const programs17 = process.env.PORTICO_TEST_POSTGRES_17 ?? '';
/** Postgres refuses root. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

jest.setTimeout(300_000);

let folder: string;
let environment: NodeJS.ProcessEnv;

const stateFile = (...names: string[]) => join(folder, 'state', ...names);

async function script(...args: string[]): Promise<{ code: number; out: string }> {
  try {
    const { stdout, stderr } = await run(process.execPath, args, { env: environment, timeout: 200_000 });
    return { code: 0, out: stderr + stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: `${stderr}${stdout}` };
  }
}

const backends = (...args: string[]) => script('compose/backends.mjs', ...args);

function secrets(): Record<string, string> {
  const lines = readFileSync(stateFile('secrets.env'), 'utf8').split('\n');
  const pairs = lines.filter((line) => /^[A-Z_]+=/.test(line));
  return Object.fromEntries(pairs.map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]));
}

/** A cluster of PostgreSQL 17 where an earlier npm start would have left it, with the user's own data in it. */
async function writeOldCluster(): Promise<void> {
  const data = stateFile('data/postgres-17');
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const password = join(folder, 'password');
  writeFileSync(password, secrets().PORTICO_POSTGRES_ADMIN_PASSWORD ?? '', { mode: 0o600 });
  if (nobody.uid) for (const path of [data, password]) chownSync(path, nobody.uid, nobody.gid);
  const options = ['-D', data, '-U', 'postgres', '--auth=scram-sha-256', `--pwfile=${password}`, '--no-sync'];
  await run(join(programs17, 'initdb'), [...options, '--locale=C.UTF-8'], { ...nobody, cwd: '/' });
  const port = await freePort();
  const settings = [
    '-c',
    `port=${port}`,
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    'unix_socket_directories=',
  ];
  const server = spawn(join(programs17, 'postgres'), ['-D', data, ...settings], {
    ...nobody,
    cwd: '/',
    stdio: 'ignore',
  });
  const { PORTICO_POSTGRES_ADMIN_PASSWORD: admin } = secrets();
  const connect = async (database: string) => {
    const client = new Client({ host: '127.0.0.1', port, user: 'postgres', password: admin ?? '', database });
    await client.connect();
    return client;
  };
  const first = await eventually(() => connect('postgres'));
  await first.query("create role portico login password 'as it was'");
  await first.query('create database portico owner portico');
  await first.end();
  const second = await connect('portico');
  await second.query('create extension vector');
  await second.query('create table kept (id int primary key, v vector(3), words text)');
  await second.query(
    "insert into kept select i, array[i, 1, 2]::vector, 'wört ' || i from generate_series(1, 5000) i",
  );
  await second.query('create index on kept using hnsw (v vector_l2_ops)');
  await second.end();
  server.kill('SIGINT');
  await once(server, 'exit');
}

async function kept(): Promise<unknown> {
  const { out } = await backends('env', 'postgres');
  const url = /PORTICO_DATABASE_URL=(.*)/.exec(out)?.[1] ?? '';
  const address = new URL(url);
  address.username = 'postgres';
  address.password = secrets().PORTICO_POSTGRES_ADMIN_PASSWORD ?? '';
  const client = new Client({ connectionString: address.href });
  await client.connect();
  try {
    const { rows } = await client.query(
      "select count(*)::int as rows, max(words) as words, (select id from kept order by v <-> '[77,1,2]' limit 1) as nearest from kept",
    );
    return rows[0];
  } finally {
    await client.end();
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portico-test-older-'));
  chmodSync(folder, 0o755);
  mkdirSync(stateFile(), { recursive: true });
  const [programs = ''] = programs17.split(/\/postgres-17-[^/]+\/usr\//);
  symlinkSync(programs, stateFile('programs'));
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('PORTICO_') || name === 'PORTICO_TEST_RUN',
  );
  const base = 30_000 + (process.pid % 200) * 10;
  environment = {
    ...Object.fromEntries(inherited),
    PORTICO_STATE_DIR: stateFile(),
    PORTICO_PORT_BASE: String(base),
    PORTICO_HTTP_PORT: String(base + 9),
    PORTICO_BACKENDS: 'native',
  };
  await script('compose/secrets.mjs');
});

afterEach(async () => {
  await script('compose/portico.mjs', 'stop');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('data of an older PostgreSQL', () => {
  beforeAll(writeOldCluster);

  it('are left alone, and the start refused, when no program can read them', async () => {
    const programs = stateFile('programs');
    const real = join(folder, 'real');
    renameSync(programs, real);
    mkdirSync(programs);
    for (const name of readdirSync(real))
      if (!name.startsWith('postgres-17')) symlinkSync(join(real, name), join(programs, name));
    try {
      const { code, out } = await backends('start', 'postgres');
      expect(code).toBe(1);
      expect(out).toMatch(/the data in .*postgres-17 are PostgreSQL 17's and could not be copied to 18/);
      expect(out).toContain('They are untouched.');
      expect(existsSync(stateFile('data/postgres-18'))).toBe(false);
      expect(existsSync(stateFile('data/postgres-17/PG_VERSION'))).toBe(true);
    } finally {
      rmSync(programs, { recursive: true });
      renameSync(real, programs);
    }
  });

  it('are copied to the present one, and the old folder stays', async () => {
    const { code, out } = await backends('start', 'postgres');
    expect([code, out]).toEqual([0, expect.stringContaining('copying the data of PostgreSQL 17 to 18')]);
    expect(out).toMatch(/postgres-17 holds what PostgreSQL 17 had .* delete it when you like/);
    expect(await kept()).toEqual({ rows: 5000, words: 'wört 999', nearest: 77 });
    expect(existsSync(stateFile('data/postgres-17/PG_VERSION'))).toBe(true);
    await backends('stop');
    const again = await backends('start', 'postgres');
    expect(again.out).not.toContain('copying');
    expect(await kept()).toEqual({ rows: 5000, words: 'wört 999', nearest: 77 });
  });
});

describe('data of an older RabbitMQ', () => {
  it('are not read, and every accepted message is delivered all the same', async () => {
    const paths = new Set<string>();
    const sink = createServer((request, response) => {
      paths.add(request.url ?? '');
      response.end();
    });
    sink.listen(0, '127.0.0.1');
    await once(sink, 'listening');
    const destination = `http://127.0.0.1:${(sink.address() as AddressInfo).port}`;
    const others = services
      .filter(({ name }) => name !== 'queue')
      .map(({ name }) => [name, { enabled: false }]);
    const file = join(folder, 'portico.yaml');
    writeFileSync(
      file,
      stringify({ ...Object.fromEntries(others), queue: { allowedDestinations: ['127.0.0.1'] } }),
    );
    try {
      expect((await script('compose/portico.mjs', 'start', '--detach', '--config', file)).code).toBe(0);
      const token = secrets().PORTICO_QUEUE_TOKEN;
      for (let i = 0; i < 30; i += 1) {
        const answer = await fetch(
          `http://127.0.0.1:${environment.PORTICO_HTTP_PORT}/queue/v2/publish/${destination}/m${i}`,
          {
            method: 'POST',
            headers: { authorization: `Bearer ${token}`, 'service-delay': '15s' },
            body: String(i),
          },
        );
        expect(answer.status).toBe(200);
      }
      await script('compose/portico.mjs', 'stop');
      renameSync(stateFile('data/rabbitmq-4'), stateFile('data/rabbitmq'));
      const { code, out } = await script('compose/portico.mjs', 'start', '--detach', '--config', file);
      expect([code, out]).toEqual([0, expect.stringMatching(/data\/rabbitmq is of an older RabbitMQ/)]);
      await eventually(() => expect(paths.size).toBe(30), 150_000);
    } finally {
      await script('compose/portico.mjs', 'stop');
      sink.close();
    }
  });
});
