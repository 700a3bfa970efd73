import { setTimeout as sleep } from 'node:timers/promises';

export const DIMENSION = 8;
const WRITERS = 2;
const BATCHES = 10;
/** Records of a batch: either all of them are of one round or none. */
const RECORDS = 20;
const PACE_MS = 100;
/** Each so many rounds a namespace comes and goes. */
const CHURN = 25;

const vectorOf = (seed) => Array.from({ length: DIMENSION }, (_, i) => Math.sin(seed * 13 + i) + 1.5);

/** A batch is stored whole, and none that is acknowledged is lost. */
export class VectorLoad {
  accepted = 0;
  queries = 0;

  constructor({ client, isOver, phase }) {
    Object.assign(this, { client, isOver });
    this.batches = Array.from({ length: WRITERS * BATCHES }, (_, i) => ({
      name: `${phase}${i}`,
      rounds: new Set([undefined]),
    }));
  }

  run() {
    const writers = Array.from({ length: WRITERS }, (_, i) => this.write(i));
    return Promise.all([...writers, this.query(), this.check()]);
  }

  async write(writer) {
    for (let n = 0; !this.isOver(); n++) {
      const batch = this.batches[writer * BATCHES + (n % BATCHES)];
      const body = Array.from({ length: RECORDS }, (_, i) => ({
        id: `${batch.name}-${i}`,
        vector: vectorOf(n + i),
        metadata: { batch: batch.name, round: n },
      }));
      batch.busy = true;
      const answer = await this.client.send('vector', '/vector/upsert', { body });
      if (answer === undefined) batch.rounds.add(n);
      else {
        this.accepted += 1;
        batch.rounds = new Set([n]);
      }
      batch.busy = false;
      if (n % CHURN === CHURN - 1) await this.comeAndGo(`soak-${writer}-${n % 100}`, body);
      await sleep(PACE_MS);
    }
  }

  async comeAndGo(namespace, body) {
    await this.client.send('vector', `/vector/upsert/${namespace}`, { body });
    await this.client.send('vector', `/vector/reset/${namespace}`, { method: 'DELETE', allowed: [404] });
    await this.client.send('vector', `/vector/delete-namespace/${namespace}`, {
      method: 'DELETE',
      // where it could not be made
      allowed: [404],
    });
  }

  async query() {
    for (let n = 0; !this.isOver(); n++) {
      const body = { vector: vectorOf(n), topK: 10, includeMetadata: true };
      if (n % 3 === 0) body.filter = `batch = '${this.batches[n % this.batches.length].name}'`;
      if ((await this.client.send('vector', '/vector/query', { body })) !== undefined) this.queries += 1;
      await sleep(PACE_MS / 2);
    }
  }

  async check() {
    for (let n = 0; !this.isOver(); n++) {
      await this.look(this.batches[n % this.batches.length]);
      await sleep(PACE_MS * 2);
    }
  }

  /** One statement reads all of a batch. */
  async look(batch) {
    const before = batch.busy ? undefined : batch.rounds;
    const ids = Array.from({ length: RECORDS }, (_, i) => `${batch.name}-${i}`);
    const answer = await this.client.send('vector', '/vector/fetch', {
      body: { ids, includeMetadata: true },
    });
    if (answer === undefined) return false;
    const rounds = new Set(answer.body.result.map((record) => record?.metadata.round));
    if (rounds.size !== 1) {
      this.client.findings.push(`vector: batch ${batch.name} is of rounds ${[...rounds].join(', ')}`);
      return true;
    }
    const [round] = rounds;
    if (before === batch.rounds && !batch.busy && !before.has(round))
      this.client.findings.push(
        `vector: batch ${batch.name} is of round ${round}, expected ${[...before].join(' or ')}`,
      );
    return true;
  }

  drained() {
    return true;
  }

  async judge() {
    for (const batch of this.batches)
      if (!(await this.look(batch)))
        this.client.findings.push(`vector: ${batch.name} cannot be read at the end`);
    return `vector: ${this.accepted} batches of ${RECORDS} acknowledged, ${this.queries} queries`;
  }
}
