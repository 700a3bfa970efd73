import { setTimeout as sleep } from 'node:timers/promises';

const PUBLISHERS = 2;
const PACE_MS = 50;
const RUN_PACE_MS = 400;
/** A message is delivered twice where its outcome was lost; more often only in several faults. */
const MOST_DELIVERIES = 6;
const KINDS = ['m', 'm', 'm', 'm', 'm', 'm', 'flaky', 'm', 'm', 'm', 'slow', 'm', 'm', 'm', 'm', 'fail'];

/** Every message that is accepted is delivered or dead, every run that is accepted ends. */
export class QueueLoad {
  /** Ids that were accepted and came nowhere yet. */
  open = new Set();
  /** By message id of those whose destination refuses them. */
  failing = new Set();
  runs = new Set();
  accepted = 0;
  acceptedRuns = 0;
  ordered = [];

  constructor({ client, isOver, phase, destinations }) {
    Object.assign(this, { client, isOver, phase, destinations });
  }

  run() {
    const publishers = Array.from({ length: PUBLISHERS }, (_, i) => this.publish(i));
    return Promise.all([...publishers, this.enqueue(), this.trigger()]);
  }

  async publish(publisher) {
    for (let n = 0; !this.isOver(); n++) {
      if (n % 10 === 9) await this.batch(publisher, n);
      else await this.one(`${this.phase}${publisher}-${n}`, KINDS[n % KINDS.length], n);
      await sleep(PACE_MS);
    }
  }

  async one(id, kind, n) {
    const headers = { 'Service-Retries': kind === 'fail' ? '1' : '10', 'Service-Retry-Delay': '300' };
    if (n % 7 === 0) headers['Service-Delay'] = '1s';
    const path = `/queue/v2/publish/${this.destinations.url}/${kind}/${id}`;
    const answer = await this.client.send('queue', path, { body: `body of ${id}`, headers });
    if (answer !== undefined) this.accept(id, kind, answer.body.messageId);
  }

  accept(id, kind, messageId) {
    this.accepted += 1;
    if (kind === 'fail') this.failing.add(messageId);
    else this.open.add(id);
  }

  async batch(publisher, n) {
    const ids = Array.from({ length: 5 }, (_, i) => `${this.phase}${publisher}-${n}-${i}`);
    const body = ids.map((id) => ({
      destination: `${this.destinations.url}/m/${id}`,
      headers: { 'Service-Retry-Delay': '300' },
      body: id,
    }));
    const answer = await this.client.send('queue', '/queue/v2/batch', { body });
    if (answer === undefined) return;
    for (const [i, row] of answer.body.entries()) if (row.messageId) this.accept(ids[i], 'm', row.messageId);
  }

  /** One after the other into a queue that keeps their order. */
  async enqueue() {
    for (let n = 0; !this.isOver(); n++) {
      const id = `${this.phase}o-${n}`;
      const path = `/queue/v2/enqueue/soak/${this.destinations.url}/ordered/${id}`;
      const headers = { 'Service-Retries': '10', 'Service-Retry-Delay': '300' };
      const answer = await this.client.send('queue', path, { body: id, headers });
      if (answer !== undefined) {
        this.accept(id, 'ordered', answer.body.messageId);
        this.ordered.push(id);
      }
      await sleep(PACE_MS * 4);
    }
  }

  async trigger() {
    for (let n = 0; !this.isOver(); n++) {
      const id = `${this.phase}r-${n}`;
      const path = `/queue/v2/trigger/${this.destinations.url}/workflow`;
      const headers = { 'Service-Retries': '20', 'Service-Retry-Delay': '300' };
      const answer = await this.client.send('queue', path, { body: { id }, headers });
      if (answer !== undefined) {
        this.acceptedRuns += 1;
        this.runs.add(id);
      }
      await sleep(RUN_PACE_MS);
    }
  }

  async drained() {
    for (const id of this.open) if (this.destinations.taken.has(id)) this.open.delete(id);
    for (const id of this.runs) if (this.destinations.finished.has(id)) this.runs.delete(id);
    if (this.failing.size > 0) for (const id of await this.dead()) this.failing.delete(id);
    return this.open.size + this.runs.size + this.failing.size === 0;
  }

  async dead() {
    const ids = [];
    let cursor = '';
    do {
      const path = `/queue/v2/dlq?count=100${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`;
      const answer = await this.client.send('queue', path, { method: 'GET' });
      if (answer === undefined) return ids;
      ids.push(...answer.body.messages.map(({ messageId }) => messageId));
      cursor = answer.body.cursor ?? '';
    } while (cursor !== '');
    return ids;
  }

  async judge() {
    const { findings } = this.client;
    const some = (ids) => `${ids.size}, such as ${[...ids].slice(0, 3).join(', ')}`;
    if (this.open.size > 0) findings.push(`queue: accepted and not delivered: ${some(this.open)}`);
    if (this.failing.size > 0) findings.push(`queue: neither delivered nor dead: ${some(this.failing)}`);
    if (this.runs.size > 0) findings.push(`workflows: accepted and not at their end: ${some(this.runs)}`);
    const counts = [...this.destinations.taken.values()];
    const duplicates = counts.reduce((sum, count) => sum + count - 1, 0);
    const most = Math.max(0, ...counts);
    if (most > MOST_DELIVERIES) findings.push(`queue: a message was delivered ${most} times`);
    this.judgeOrder();
    return `queue: ${this.accepted} messages accepted and delivered or dead, ${duplicates} deliveries more (${most} of one at most); ${this.acceptedRuns} workflow runs accepted and ended`;
  }

  /** Of those whose place is known: what had no answer may have come at any time. */
  judgeOrder() {
    const known = new Set(this.ordered);
    const came = this.destinations.order.filter((id) => known.has(id));
    const wrong = came.findIndex((id, i) => i > 0 && placeOf(id) < placeOf(came[i - 1]));
    if (wrong > 0)
      this.client.findings.push(`queue: ordered message ${came[wrong]} came after ${came[wrong - 1]}`);
  }
}

const placeOf = (id) => Number(id.split('-')[1]);
