import { loadavg } from 'node:os';
import pg from 'pg';
import { compiled } from '../../support/compiled.mjs';
import { clusteredVectors, DIMENSION, nearestProducts } from './data.mjs';
import { BATCH, VectorGateway } from './gateway.mjs';
import { compareLoops } from './load.mjs';

const { packMany, packOne, comparison, denseSearch, StatementCache, lockNamespaceText, upsertText } =
  await compiled('vector', [
    'services/vector/records/components.js',
    'services/vector/score.js',
    'services/vector/statements/dense-search.js',
    'services/vector/statements/index-shape.js',
    'services/vector/statements/namespace-statements.js',
    'services/vector/statements/write-statements.js',
  ]);

const SEED = 20_260_801;
const QUERY_CLIENTS = 4;
const QUERIES = 1_000;
/** Queries whose true neighbours are computed. */
const JUDGED = 200;
const TOP_K = 10;
const RULES = { dimension: DIMENSION, needsLength: true };

/** Of one length, so that a request can be given other ids where it stands. */
function idOf(n) {
  return `doc-${String(n).padStart(9, '0')}`;
}

/** @param {Buffer} request */
function withIdPlaces(request) {
  const places = [];
  for (let at = request.indexOf('"doc-'); at >= 0; at = request.indexOf('"doc-', at + 1)) places.push(at + 1);
  return { request, places };
}

/**
 * Vectors in a schema of their own and a gateway on it, for comparisons with bare node-postgres that runs the same SQL with
 * binary parameters.
 */
export class VectorBench {
  #gateway;
  #next = 0;
  #nextId = 1_000_000;

  /** @param {number} count how many vectors there are to store */
  static async open(count) {
    const bench = new VectorBench();
    const all = clusteredVectors(count + QUERIES, SEED);
    bench.count = count;
    bench.vectors = all.subarray(QUERIES * DIMENSION);
    bench.queryVectors = Array.from({ length: QUERIES }, (_, i) =>
      all.subarray(i * DIMENSION, (i + 1) * DIMENSION),
    );
    bench.#gateway = await VectorGateway.open();
    console.log(
      `\n${count} x ${DIMENSION}, cosine, clustered, seed ${SEED}; load average ${loadavg()[0].toFixed(1)}`,
    );
    return bench;
  }

  async close() {
    console.log(
      `load average at the end ${loadavg()[0].toFixed(1)}; client, gateway and Postgres share the machine`,
    );
    await this.#gateway.close();
  }

  async startGateway({ hnsw }) {
    await this.#gateway.start(
      { dimension: DIMENSION, hnsw: { enabled: hnsw, buildMemory: 256 * 1024 * 1024 } },
      QUERY_CLIENTS,
    );
    const { schema } = this.#gateway;
    const { rows } = await this.#gateway.admin.query(`select id from ${schema}.namespaces where name = ''`);
    const names = ['records_1', 'postings_1', 'repeated_1', 'namespaces', 'resumable_queries'].map(
      (name) => `"${schema}".${name}`,
    );
    const [records, postings, repeated, namespaces, resumableQueries] = names;
    this.namespaceId = rows[0].id;
    this.shape = {
      indexId: 1,
      records,
      postings,
      repeated,
      namespaces,
      resumableQueries,
      sparse: false,
      dense: comparison('COSINE', DIMENSION, 'vector'),
    };
  }

  /** Stores all vectors through the gateway, a batch after the other. */
  async fill() {
    await this.#gateway.fill('', this.count, (n) => this.#recordAt(n));
  }

  /** Batches of new records into two namespaces a contender, each of which is written by one client. */
  async upserts(title, goal, { rounds, seconds }) {
    const batches = Array.from({ length: 4 }, (_, i) => this.#records((i * BATCH) % this.count, BATCH));
    const spaces = ['a', 'b'];
    const requests = spaces.map((space) =>
      batches.map((batch) => withIdPlaces(this.#gateway.post(`/upsert/bench-${space}`, batch))),
    );
    const bare = await Promise.all(spaces.map(() => this.#connect()));
    const type = (await this.#gateway.admin.query("select 'vector'::regtype::oid as oid")).rows[0].oid;
    const upsert = { name: 'upsert', text: upsertText(this.shape) };
    const lock = { name: 'lock', text: lockNamespaceText(this.shape) };
    for (const space of spaces)
      await this.#gateway.admin.query(
        `insert into ${this.shape.namespaces} (index_id, name) values (1, $1) on conflict do nothing`,
        [`bare-${space}`],
      );
    let turn = 0;
    const contenders = [
      [
        'bare pg',
        bare,
        async (client) => {
          const batch = batches[turn++ % batches.length];
          const first = this.#takeIds();
          const packed = packMany(
            batch.map(({ vector }) => vector),
            RULES,
            type,
            String,
          );
          await client.query('begin');
          const { rows } = await client.query({ ...lock, values: [`bare-${spaces[bare.indexOf(client)]}`] });
          const columns = [
            batch.map((_, k) => idOf(first + k)),
            batch.map(({ metadata }) => JSON.stringify(metadata)),
            batch.map(() => null),
            packed,
          ];
          await client.query({ ...upsert, values: [rows[0].id, rows[0].next_row, ...columns] });
          await client.query('commit');
        },
      ],
      [
        'Portico',
        this.#gateway.clients.slice(0, 2),
        async (client) => {
          const { request, places } =
            requests[this.#gateway.clients.indexOf(client)][turn++ % batches.length];
          const first = this.#takeIds();
          for (const [k, place] of places.entries()) request.latin1Write(idOf(first + k), place);
          await client.send(request);
        },
      ],
    ];
    const title2 = `${title}, batches of ${BATCH} (${(requests[0][0].request.length / 1e6).toFixed(1)} MB of JSON), 2 clients`;
    await compareLoops({ title: title2, goal, unit: 'vectors', perCall: BATCH, rounds, seconds }, contenders);
    for (const client of bare) await client.end();
  }

  /**
   * What one request adds to the resident memory of an idle gateway, and what many leave behind. They replace the same records,
   * so that the disk does not fill.
   * @param {number} requests
   */
  async memory(requests) {
    const request = this.#gateway.post('/upsert/memory', this.#records(0, BATCH));
    const megabytes = request.length / 1024 / 1024;
    await this.startGateway({ hnsw: false });
    const [client] = this.#gateway.clients;
    const before = this.#gateway.rssMegabytes();
    let peak = before;
    const watch = setInterval(() => {
      peak = Math.max(peak, this.#gateway.rssMegabytes());
    }, 2);
    await client.send(request);
    clearInterval(watch);
    const times = (peak - before) / megabytes;
    console.log(
      `\nmemory: one request of ${megabytes.toFixed(1)} MB raises RSS by ${(peak - before).toFixed(1)} MB; goal: at most 3 times its body, ${times <= 3 ? 'reached' : 'MISSED'} (${times.toFixed(1)})`,
    );
    const marks = [];
    for (let i = 1; i <= requests; i++) {
      await client.send(request);
      if (i % Math.ceil(requests / 10) === 0) marks.push(`${i}: ${this.#gateway.rssMegabytes().toFixed(0)}`);
    }
    console.log(`  RSS in MB after so many requests in a row: ${marks.join(', ')}`);
  }

  /** @param {string[]} spaces namespaces that get an index */
  waitForHnsw(spaces) {
    return this.#gateway.waitForHnsw(spaces);
  }

  /** Gives every namespace of the upserts so many records that it gets an HNSW index. */
  async fillEach() {
    const spaces = ['bench-a', 'bench-b', 'bare-a', 'bare-b'];
    for (const space of spaces) await this.#gateway.fill(space, 4 * BATCH, (n) => this.#recordAt(n));
    await this.waitForHnsw(spaces);
  }

  async queries(title, goal, { rounds, seconds }) {
    const requests = this.queryVectors.map((vector) =>
      this.#gateway.post('/query', { vector: [...vector], topK: TOP_K }),
    );
    const cache = new StatementCache(1);
    const statements = this.queryVectors.map((vector) =>
      denseSearch(
        this.shape,
        cache,
        {
          vector: packOne([...vector], RULES, 'query'),
          namespace: '',
          topK: TOP_K,
          included: { vectors: false, metadata: false, data: false },
          filter: undefined,
          without: undefined,
        },
        { namespaceId: this.namespaceId, ef: undefined, repeats: false },
      ),
    );
    const bare = await Promise.all(this.#gateway.clients.map(() => this.#connect()));
    await compareLoops(
      { title: `${title}, ${QUERY_CLIENTS} clients, top ${TOP_K}`, goal, unit: 'queries', rounds, seconds },
      [
        [
          'bare pg',
          bare,
          async (client) => {
            const { rows } = await client.query(statements[this.#turn()]);
            if (rows.length !== TOP_K || rows[0].exact) throw new Error('the bare query did not use HNSW');
          },
        ],
        [
          'Portico',
          this.#gateway.clients,
          async (client) => {
            await client.send(requests[this.#turn()]);
          },
        ],
      ],
    );
    for (const client of bare) await client.end();
  }

  /** Share of the true neighbours that the gateway's replies have, by score: equally near ones count. */
  async recall(title, goal, extra, matches) {
    const judged = this.queryVectors.slice(0, JUDGED);
    const truth = nearestProducts(this.vectors, judged, TOP_K, matches);
    let hits = 0;
    const latencies = [];
    for (const [i, vector] of judged.entries()) {
      const sentAt = performance.now();
      const body = await this.#gateway.clients[0].send(
        this.#gateway.post('/query', { vector: [...vector], topK: TOP_K, ...extra }),
      );
      latencies.push(performance.now() - sentAt);
      const least = (1 + truth[i][TOP_K - 1]) / 2 - 1e-6;
      hits += JSON.parse(body).result.filter(({ score }) => score >= least).length;
    }
    const recall = hits / (JUDGED * TOP_K);
    const mean = latencies.reduce((sum, ms) => sum + ms, 0) / latencies.length;
    console.log(
      `  recall@${TOP_K} ${title}: ${recall.toFixed(4)}, mean ${mean.toFixed(1)} ms; goal ${goal}, ${recall >= goal ? 'reached' : 'MISSED'}`,
    );
  }

  #takeIds() {
    this.#nextId += BATCH;
    return this.#nextId;
  }

  #turn() {
    this.#next = (this.#next + 1) % QUERIES;
    return this.#next;
  }

  #recordAt(n) {
    const vector = [...this.vectors.subarray(n * DIMENSION, (n + 1) * DIMENSION)];
    return { id: idOf(n), vector, metadata: { cat: n % 10, tag: `t${n % 100}`, sel: n % 1_000 } };
  }

  #records(start, count) {
    return Array.from({ length: count }, (_, k) => this.#recordAt(start + k));
  }

  async #connect() {
    // those of the service: a reference that plans otherwise runs other statements
    const options = [
      'hnsw.ef_search=80',
      'hnsw.iterative_scan=relaxed_order',
      'jit=off',
      'enable_seqscan=off',
      'max_parallel_workers_per_gather=0',
    ];
    const client = new pg.Client({
      connectionString: process.env.PORTICO_DATABASE_URL,
      options: options.map((option) => `-c ${option}`).join(' '),
    });
    await client.connect();
    return client;
  }
}
