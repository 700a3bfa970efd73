import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startServer } from '../server-process.mjs';
import { HttpClient, post } from './load.mjs';

/** Records of one upsert. */
export const BATCH = 1_000;

/** A gateway of its own with only the vector service, in a schema of its own. */
export class VectorGateway {
  #token = randomBytes(24).toString('base64url');
  #server;
  #clients = [];

  static async open() {
    const gateway = new VectorGateway();
    gateway.schema = `bench_vector_${randomBytes(4).toString('hex')}`;
    gateway.folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
    gateway.admin = new pg.Client({ connectionString: process.env.PORTICO_DATABASE_URL });
    await gateway.admin.connect();
    return gateway;
  }

  /** Starts it, instead of the one that ran. @param {object} index its settings @param {number} clients connections to it */
  async start(index, clients = 1) {
    await this.stop();
    const file = join(this.folder, 'portico.yaml');
    // YAML reads JSON
    await writeFile(
      file,
      JSON.stringify({
        http: { port: 0 },
        vector: { database: { schema: this.schema }, indexes: [index] },
      }),
      { mode: 0o600 },
    );
    const off = Object.fromEntries(
      ['KV', 'BROKER', 'QUEUE'].map((name) => [`PORTICO_${name}_ENABLED`, 'false']),
    );
    this.#server = await startServer({
      args: ['dist/main.js', '--config', file],
      env: {
        ...off,
        PORTICO_DATABASE_URL: process.env.PORTICO_DATABASE_URL,
        PORTICO_VECTOR_TOKEN: this.#token,
      },
      portOf: (line) => Number(/"port":(\d+).*"msg":"listening"/.exec(line)?.[1]) || undefined,
    });
    this.#clients = Array.from({ length: clients }, () => new HttpClient(this.#server.port));
    // the first request waits for the tables
    await this.#clients[0].send(this.post('/info', []));
  }

  get clients() {
    return this.#clients;
  }

  post(path, body) {
    return post(`/vector${path}`, this.#token, body);
  }

  /** @returns the reply's `result` */
  async call(path, body) {
    return JSON.parse(await this.#clients[0].send(this.post(path, body))).result;
  }

  rssMegabytes() {
    return this.#server.rssMegabytes();
  }

  /** Stores records one batch after the other. @param {(n: number) => object} recordAt */
  async fill(namespace, count, recordAt) {
    for (let start = 0; start < count; start += BATCH) {
      const length = Math.min(BATCH, count - start);
      await this.call(
        `/upsert/${namespace}`,
        Array.from({ length }, (_, k) => recordAt(start + k)),
      );
    }
  }

  /** Waits until every one of the namespaces has its HNSW index. @param {string[]} spaces */
  async waitForHnsw(spaces) {
    const startedAt = performance.now();
    for (;;) {
      const { rows } = await this.admin.query(
        `select 1 from ${this.schema}.namespaces where hnsw and name = any($1)`,
        [spaces],
      );
      if (rows.length === spaces.length) break;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    console.log(`\nHNSW built in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
    await this.admin.query(`vacuum analyze ${this.schema}.records_1`);
  }

  /** What all graphs take on disk, and in memory where they are used. */
  async graphs() {
    const { rows } = await this.admin.query(
      `select coalesce(sum(pg_relation_size(c.oid)), 0)::float8 as bytes from pg_class c
       join pg_am a on a.oid = c.relam and a.amname = 'hnsw' where c.relnamespace = $1::regnamespace`,
      [this.schema],
    );
    return rows[0];
  }

  async stop() {
    for (const client of this.#clients.splice(0)) client.close();
    await this.#server?.stop();
    this.#server = undefined;
  }

  async close() {
    await this.stop();
    await this.admin.query(`drop schema if exists ${this.schema} cascade`);
    await this.admin.end();
    await rm(this.folder, { recursive: true, force: true });
  }
}
