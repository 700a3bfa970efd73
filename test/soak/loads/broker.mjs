import { setTimeout as sleep } from 'node:timers/promises';

export const TOPIC = 'soak-records';
export const PARTITIONS = 6;
const GROUP = 'soak';
const PRODUCERS = 2;
const CONSUMERS = 3;
const RECORDS = 10;
const PACE_MS = 50;
const WAIT_MS = 1_000;

/** Every record that is acknowledged is consumed at least once. */
export class BrokerLoad {
  /** Not consumed yet. */
  missing = new Set();
  seen = new Set();
  produced = 0;
  duplicates = 0;

  constructor({ client, isOver, phase }) {
    Object.assign(this, { client, isOver, phase });
  }

  run() {
    this.consumers = Promise.all(Array.from({ length: CONSUMERS }, (_, i) => this.consume(`i${i}`)));
    return Promise.all(Array.from({ length: PRODUCERS }, (_, i) => this.produce(i)));
  }

  async produce(producer) {
    for (let n = 0; !this.isOver(); n++) {
      const ids = Array.from({ length: RECORDS }, (_, i) => `${this.phase}-${producer}-${n}-${i}`);
      const body = ids.map((value) => ({ topic: TOPIC, value }));
      const answer = await this.client.send('broker', '/broker/produce', { body });
      if (answer !== undefined) {
        this.produced += ids.length;
        for (const id of ids) if (!this.seen.has(id)) this.missing.add(id);
      }
      await sleep(PACE_MS);
    }
  }

  /** Confirms what it has read with its next call, so that a reply that was lost comes again. */
  async consume(instance) {
    let delivery;
    while (!this.finished) {
      const response = await this.read(instance, delivery);
      if (response === undefined) {
        delivery = undefined;
        await sleep(PACE_MS * 4);
        continue;
      }
      delivery = response.delivery;
      for (const { value } of response.records) {
        if (this.seen.has(value)) this.duplicates += 1;
        this.seen.add(value);
        this.missing.delete(value);
      }
    }
    await this.client.leave(`${GROUP}/${instance}`);
  }

  async read(instance, delivery) {
    const headers = {
      'Broker-Redeliver': 'true',
      'Broker-Auto-Offset-Reset': 'earliest',
      ...(delivery === undefined ? {} : { 'Broker-Acknowledge': delivery }),
    };
    const path = `/broker/consume/${GROUP}/${instance}/${TOPIC}?timeout=${WAIT_MS}`;
    return this.client.consume(path, headers);
  }

  drained() {
    return this.missing.size === 0;
  }

  async end() {
    this.finished = true;
    await this.consumers;
  }

  async judge() {
    if (this.missing.size > 0)
      this.client.findings.push(
        `broker: ${this.missing.size} acknowledged records were not consumed, such as ${[...this.missing].slice(0, 3).join(', ')}`,
      );
    return `broker: ${this.produced} records acknowledged and consumed, ${this.duplicates} more than once`;
  }
}
