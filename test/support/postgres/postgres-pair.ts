import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync } from 'node:fs';
import { appendFile, chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { eventually } from '../eventually.js';
import { freePort } from '../free-port.js';

const run = promisify(execFile);
const programs = () => process.env.PORTICO_TEST_POSTGRES_17 ?? '';
/** Postgres refuses root. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

const SETTINGS = [
  "listen_addresses = '127.0.0.1'",
  "unix_socket_directories = ''",
  'shared_buffers = 16MB',
  // a standby takes no fewer than initdb has given the primary
  'max_connections = 100',
  'wal_level = replica',
  'hot_standby = on',
  'wal_receiver_status_interval = 1s',
  // what would be lost with the machine is nothing that a killed process loses
  'fsync = off',
];

/** One of the two servers. */
export class PostgresNode {
  private child: ChildProcess | undefined;
  private log = '';

  constructor(
    readonly folder: string,
    readonly port: number,
  ) {}

  /** Resolves when it answers. */
  async start(): Promise<void> {
    const child = spawn(join(programs(), 'postgres'), ['-D', this.folder, '-c', `port=${this.port}`], {
      ...nobody,
      cwd: '/',
      stdio: ['ignore', 'ignore', 'pipe'],
      env: marked(),
    });
    this.child = child;
    child.stderr?.on('data', (chunk: Buffer) => {
      this.log = (this.log + chunk).slice(-2_000);
    });
    await eventually(() => this.query('select 1')).catch((error: Error) => {
      throw new Error(`${error.message}\n${this.log}`);
    });
  }

  /** SIGQUIT: every process of it ends at once, as after a crash; a SIGKILL would leave its children for a while. */
  async crash(): Promise<void> {
    await this.end('SIGQUIT');
  }

  pause(): void {
    this.child?.kill('SIGSTOP');
  }

  resume(): void {
    this.child?.kill('SIGCONT');
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGCONT');
    child.kill(signal);
    await gone;
  }

  async query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 5_000 });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }
}

export interface PostgresPair {
  readonly primary: PostgresNode;
  /** A synchronous one. */
  readonly standby: PostgresNode;
  /** Both hosts, the standby first. */
  readonly url: string;
  /** The standby becomes the primary, and waits for no other. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

/** A primary and its synchronous standby, as two servers of a test's own. */
export async function startPostgresPair(): Promise<PostgresPair> {
  const folder = await mkdtemp(join(tmpdir(), 'portico-test-postgres-'));
  await chmod(folder, 0o755);
  const [primary, standby] = [
    new PostgresNode(join(folder, 'one'), await freePort()),
    new PostgresNode(join(folder, 'two'), await freePort()),
  ];
  const stop = async () => {
    await Promise.all([primary.end('SIGQUIT'), standby.end('SIGQUIT')]);
    await rm(folder, { recursive: true, force: true });
  };
  await begin(primary, standby).catch(async (error) => {
    await stop();
    throw error;
  });
  return {
    primary,
    standby,
    url: `postgres://postgres@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres`,
    promote: async () => {
      await standby.query('select pg_promote()');
    },
    stop,
  };
}

async function begin(primary: PostgresNode, standby: PostgresNode): Promise<void> {
  await initialize(primary);
  await copy(primary, standby);
  await appendFile(
    join(primary.folder, 'postgresql.conf'),
    "synchronous_standby_names = '*'\nsynchronous_commit = remote_apply\n",
  );
  await primary.start();
  await standby.start();
  await eventually(async () => {
    const rows = await primary.query("select 1 from pg_stat_replication where sync_state = 'sync'");
    if (rows.length === 0) throw new Error('the standby does not follow yet');
  });
}

async function initialize({ folder }: PostgresNode): Promise<void> {
  await mkdir(folder, { mode: 0o700 });
  if (nobody.uid !== undefined) chownSync(folder, nobody.uid, nobody.gid);
  const options = ['-D', folder, '-U', 'postgres', '--auth=trust', '--no-sync', '--locale=C.UTF-8'];
  await run(join(programs(), 'initdb'), options, { ...nobody, cwd: '/', env: marked() });
  await writeFile(join(folder, 'postgresql.conf'), `${SETTINGS.join('\n')}\n`);
}

/** While neither runs, the files are all there is of a server. */
async function copy(primary: PostgresNode, standby: PostgresNode): Promise<void> {
  await cp(primary.folder, standby.folder, { recursive: true });
  await writeFile(join(standby.folder, 'standby.signal'), '');
  const source = `host=127.0.0.1 port=${primary.port} user=postgres application_name=standby`;
  await appendFile(join(standby.folder, 'postgresql.conf'), `primary_conninfo = '${source}'\n`);
  await chmod(standby.folder, 0o700);
  if (nobody.uid !== undefined) await run('chown', ['-R', `${nobody.uid}:${nobody.gid}`, standby.folder]);
}

/** The variables that a program needs, and the marks of the test run. */
function marked(): Record<string, string> {
  const wanted = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[0] === 'PATH' || entry[0].startsWith('PORTICO_TEST_'),
  );
  return Object.fromEntries(wanted);
}
