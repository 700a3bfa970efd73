import { setTimeout as sleep } from 'node:timers/promises';

const CLIENTS = 4;
/** Keys of a client that are written in turn: each is read again at the end. */
const KEYS = 50;
const PACE_MS = 25;

/** Values that are acknowledged stay, and no command runs twice. */
export class KvLoad {
  accepted = 0;

  /** What was acknowledged and is not there, where replicas may lack what their primary had. */
  lost = 0;

  /**
   * @param {string} phase begins the names of all that is written
   * @param {boolean} mayLose whether a replica may become the primary, which then lacks the last of what it was told
   */
  constructor({ client, isOver, phase, mayLose = false }) {
    Object.assign(this, { client, isOver, mayLose });
    const begin = (i) => `soak:${phase}:${i}`;
    this.clients = Array.from({ length: CLIENTS }, (_, i) => ({
      counter: `${begin(i)}:counter`,
      certain: 0,
      open: 0,
      keys: Array.from({ length: KEYS }, (__, k) => ({ name: `${begin(i)}:${k}`, values: new Set([null]) })),
    }));
  }

  run() {
    return Promise.all(this.clients.map((one) => this.work(one)));
  }

  async work(own) {
    for (let n = 0; !this.isOver(); n++) {
      if (n % 4 === 3) await this.count(own);
      else if (n % 4 === 2) await this.read(own.keys[(n * 7) % KEYS]);
      else await this.write(own.keys[n % KEYS], `${n}-${'x'.repeat(n % 500)}`);
      await sleep(PACE_MS);
    }
  }

  async write(key, value) {
    const answer = await this.client.send('kv', '/kv', { body: ['SET', key.name, value] });
    if (answer === undefined) return key.values.add(value);
    this.accepted += 1;
    key.values = new Set([value]);
  }

  async count(own) {
    const answer = await this.client.send('kv', '/kv/multi-exec', {
      body: [
        ['INCR', own.counter],
        ['GET', own.counter],
      ],
    });
    if (answer === undefined) own.open += 1;
    else own.certain += 1;
  }

  async read(key) {
    const before = key.values;
    const answer = await this.client.send('kv', '/kv', { body: ['GET', key.name] });
    if (answer === undefined || key.values !== before) return;
    const { result } = answer.body;
    if (key.values.has(result)) return;
    if (this.mayLose) {
      this.lost += 1;
      key.values.add(result);
    } else this.client.findings.push(`kv: ${key.name} is ${String(result).slice(0, 20)}, which it cannot be`);
  }

  drained() {
    return true;
  }

  async judge() {
    for (const own of this.clients) {
      for (const key of own.keys) await this.read(key);
      const answer = await this.client.send('kv', '/kv', { body: ['GET', own.counter] });
      const count = Number(answer?.body.result ?? 0);
      const most = own.certain + own.open;
      if (count < own.certain && this.mayLose) this.lost += own.certain - count;
      else if (count < own.certain || count > most)
        this.client.findings.push(`kv: ${own.counter} is ${count}, expected ${own.certain} to ${most}`);
    }
    const increments = this.clients.reduce((sum, { certain }) => sum + certain, 0);
    const lost = this.mayLose ? `, ${this.lost} lost with a primary` : '';
    return `kv: ${this.accepted} writes and ${increments} increments acknowledged${lost}`;
  }
}
