import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { connections, filesOf, rssOf } from './processes.mjs';

const MIB = 1024 * 1024;
const ASK_MS = 5_000;

/** Watches the gateway and what it leaves in the backends. */
export class Watch {
  /** Curves by picture and name, with times in s. @type {Record<string, Record<string, {at: number, value: number}[]>>} */
  curves = {};

  /** @param {{gateway: any, set: any, ports: Record<string, number>, schemas: string[], prefix: string}} parts */
  constructor(parts) {
    Object.assign(this, parts);
    this.begun = performance.now();
  }

  /** Samples until it is told to end. */
  start(everyMs) {
    this.isOver = false;
    this.sampling = (async () => {
      for (let n = 0; !this.isOver; n++) {
        await this.sample(n % 5 === 0).catch(() => undefined);
        await sleep(everyMs);
      }
    })();
  }

  async end() {
    this.isOver = true;
    await this.sampling;
  }

  seconds(at = performance.now()) {
    return (at - this.begun) / 1_000;
  }

  draw(picture, values) {
    const at = this.seconds();
    this.curves[picture] ??= {};
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) continue;
      this.curves[picture][name] ??= [];
      this.curves[picture][name].push({ at, value });
    }
  }

  async sample(all) {
    const pids = this.gateway.pids();
    this.draw('memory', { RSS: sum(pids.map(rssOf)) });
    const { backends, others } = this.sockets(pids);
    this.draw('connections', backends);
    this.draw('handles', { files: others });
    if (!all) return;
    const shots = await this.snapshots(false);
    this.draw('memory', { heap: shots.heap });
    this.draw('handles', { timers: shots.resources.Timeout ?? 0 });
    const [postgres, rabbitmq] = await Promise.allSettled([this.postgres(), this.rabbitmq()]);
    if (postgres.value) this.draw('tables', { MiB: postgres.value.bytes / MIB });
    if (rabbitmq.value) this.draw('rabbitmq', rabbitmq.value);
    this.draw('disk', this.disks());
  }

  /** Sums over all processes of the gateway. */
  async snapshots(collect) {
    const all = { resources: {}, heap: 0, silent: 0 };
    for (const pid of this.gateway.pids()) {
      const shot = await this.gateway.snapshot(pid, collect);
      if (shot === undefined) all.silent += 1;
      for (const [name, count] of Object.entries(shot?.resources ?? {}))
        all.resources[name] = (all.resources[name] ?? 0) + count;
      all.heap += (shot?.heap ?? 0) / MIB;
    }
    return all;
  }

  /** The gateway's connections by backend, and how many further files it has open. */
  sockets(pids = this.gateway.pids()) {
    const known = connections();
    const byPort = new Map(Object.entries(this.ports).map(([name, port]) => [port, name]));
    const backends = Object.fromEntries(Object.keys(this.ports).map((name) => [name, 0]));
    let others = 0;
    for (const file of pids.flatMap(filesOf)) {
      const name = byPort.get(known.get(file)?.remote);
      if (name === undefined) others += 1;
      else backends[name] += 1;
    }
    return { backends, others };
  }

  async postgres() {
    const client = new pg.Client({
      connectionString: this.set.urls().PORTICO_DATABASE_URL,
      connectionTimeoutMillis: ASK_MS,
      query_timeout: ASK_MS,
    });
    client.on('error', () => undefined);
    await client.connect();
    try {
      // a day's entries of the log go together when the day is over
      const { rows } = await client.query(
        `select coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 bytes,
           coalesce(sum(pg_total_relation_size(c.oid)) filter (where relname !~ '^events_'), 0)::float8 lasting,
           (select count(*)::int from pg_stat_activity where state like 'idle in transaction%'
             and now() - state_change > '10 s') stuck
         from pg_class c join pg_namespace n on n.oid = relnamespace where relkind = 'r' and nspname = any($1)`,
        [this.schemas],
      );
      return rows[0];
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  async rabbitmq() {
    const { username, password } = new URL(this.set.urls().PORTICO_RABBITMQ_URL);
    const headers = { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
    const url = `http://127.0.0.1:${this.set.profile.ports.rabbitmqManagement}/api/queues?columns=name,messages`;
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(ASK_MS) });
    const rows = (await answer.json()).filter(({ name }) => name.startsWith(this.prefix));
    return { queues: rows.length, messages: sum(rows.map(({ messages = 0 }) => messages)) };
  }

  /** How many groups have members. */
  async groups() {
    const brokers = this.set.urls().PORTICO_KAFKA_BROKERS.split(',');
    const admin = new kafkajs.Kafka({ brokers, logLevel: kafkajs.logLevel.NOTHING }).admin();
    await admin.connect();
    try {
      const { groups } = await admin.listGroups();
      const ids = groups.map(({ groupId }) => groupId).filter((id) => id.startsWith('soak'));
      if (ids.length === 0) return [];
      const described = await admin.describeGroups(ids);
      return described.groups.filter(({ members }) => members.length > 0).map(({ groupId }) => groupId);
    } finally {
      await admin.disconnect();
    }
  }

  /** MiB below the data folder of each backend that runs as a process. */
  disks() {
    const { data } = this.set.profile;
    const found = {};
    for (const name of folders(data)) {
      const backend = name.split('-')[0];
      found[backend] = (found[backend] ?? 0) + bytesBelow(join(data, name)) / MIB;
    }
    return found;
  }
}

const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);

function folders(path) {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function bytesBelow(path) {
  try {
    const stat = lstatSync(path);
    return stat.isDirectory()
      ? sum(readdirSync(path).map((name) => bytesBelow(join(path, name))))
      : stat.blocks * 512;
  } catch {
    return 0;
  }
}
