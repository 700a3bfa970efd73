import { appendFileSync, chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { binOf } from '../../compose/native/postgres-clusters.mjs';
import { commandAs, giveTo } from '../../compose/native/unprivileged.mjs';

const START_MS = 120_000;
/** So long a manager of the cluster takes to see that its primary is gone. */
const NOTICE_MS = 2_000;
const SETTINGS = [
  "listen_addresses = '*'",
  "unix_socket_directories = ''",
  'shared_buffers = 64MB',
  'max_connections = 100',
  'wal_keep_size = 64MB',
  'wal_receiver_timeout = 5s',
  'wal_sender_timeout = 5s',
];

/** A primary and a synchronous standby, and what a manager of such a pair does when one is lost. */
export class PostgresPair {
  constructor({ p, runner, folder, machines }) {
    Object.assign(this, { p, runner, folder });
    [this.primary, this.standby] = machines;
  }

  get url() {
    const hosts = [this.standby, this.primary].map(({ address }) => `${address}:5432`).sort();
    return `postgres://postgres@${hosts.join(',')}/postgres`;
  }

  dataOf(machine) {
    return join(this.folder, machine.name);
  }

  async start() {
    const data = this.dataOf(this.primary);
    mkdirSync(data, { mode: 0o700 });
    giveTo(this.runner, data);
    const options = ['-D', data, '-U', 'postgres', '--auth=trust', '--no-sync', '--locale=C.UTF-8'];
    await this.execute(this.primary, 'initdb', options);
    writeFileSync(join(data, 'postgresql.conf'), `${SETTINGS.join('\n')}\n`);
    appendFileSync(
      join(data, 'pg_hba.conf'),
      'host all all 10.88.77.0/24 trust\nhost replication all 10.88.77.0/24 trust\n',
    );
    await this.run(this.primary);
    await this.query(this.primary, 'create extension vector');
    await this.follow();
  }

  execute(machine, program, args) {
    const { file, args: all, env } = commandAs(this.runner, join(binOf(this.p), program), args);
    return machine.run(file, all, { cwd: '/', env: { ...process.env, LC_ALL: 'C.UTF-8', ...env } });
  }

  async run(machine) {
    rmSync(join(this.dataOf(machine), 'postmaster.pid'), { force: true });
    const { file, args, env } = commandAs(this.runner, join(binOf(this.p), 'postgres'), [
      '-D',
      this.dataOf(machine),
    ]);
    machine.spawn(file, args, {
      cwd: '/',
      stdio: 'ignore',
      env: { ...process.env, LC_ALL: 'C.UTF-8', ...env },
    });
    await until(() => this.query(machine, 'select 1'));
  }

  /** The second machine becomes a synchronous standby of the first. */
  async follow() {
    await this.standby.kill();
    const data = this.dataOf(this.standby);
    rmSync(data, { recursive: true, force: true });
    mkdirSync(data, { mode: 0o700 });
    giveTo(this.runner, data);
    chmodSync(data, 0o700);
    const source = ['-h', this.primary.address, '-U', 'postgres'];
    await this.execute(this.standby, 'pg_basebackup', [
      ...source,
      '-D',
      data,
      '-R',
      '-c',
      'fast',
      '--no-sync',
    ]);
    // as a primary it waits for nobody until it is told to
    appendFileSync(join(data, 'postgresql.auto.conf'), "synchronous_standby_names = ''\n");
    await this.run(this.standby);
    await this.waitFor('*');
  }

  /** Whom the primary waits for before it acknowledges. */
  async waitFor(names) {
    await this.query(this.primary, `alter system set synchronous_standby_names = '${names}'`);
    await this.query(this.primary, 'select pg_reload_conf()');
    if (names === '') return;
    await until(async () => {
      const { length } = await this.query(
        this.primary,
        "select 1 from pg_stat_replication where sync_state = 'sync'",
      );
      if (length === 0) throw new Error('no synchronous standby');
    });
  }

  /** The primary is lost: the standby takes over; what comes back of the old one is ended before it can write. */
  async failOver(fault, undo, lastsMs) {
    await fault(this.primary);
    await sleep(NOTICE_MS);
    await until(() => this.query(this.standby, 'select pg_promote()'));
    [this.primary, this.standby] = [this.standby, this.primary];
    await sleep(lastsMs);
    await this.standby.kill();
    await undo(this.standby);
    await this.follow();
  }

  /** The standby is lost: the primary is told to go on without. */
  async loseStandby(fault, undo, lastsMs) {
    await fault(this.standby);
    await sleep(NOTICE_MS);
    await this.waitFor('');
    await sleep(lastsMs);
    await undo(this.standby);
    await this.follow();
  }

  async query(machine, text) {
    const client = new pg.Client({
      host: machine.address,
      user: 'postgres',
      database: 'postgres',
      connectionTimeoutMillis: 2_000,
      query_timeout: 10_000,
    });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

/** Asks until there is no error. */
export async function until(work, limitMs = START_MS) {
  const end = performance.now() + limitMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > end) throw error;
      await sleep(200);
    }
  }
}
