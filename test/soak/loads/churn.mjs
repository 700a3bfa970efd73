import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { TOPIC } from './broker.mjs';
import { DIMENSION } from './vector.mjs';

const PACE_MS = 300;
const STALL_MS = 3_000;
const LARGE_BYTES = 4 * 1024 * 1024;

/** Clients that come, leave in the middle, or stall. Nothing of what they do may stay behind. */
export class Churn {
  visits = 0;

  constructor({ client, isOver }) {
    Object.assign(this, { client, isOver });
  }

  async run() {
    await this.client.send('kv', '/kv/set/soak:large', { body: 'x'.repeat(LARGE_BYTES) });
    const kinds = [this.leave, this.half, this.unread, this.listener, this.consumer, this.vanish];
    for (let n = 0; !this.isOver(); n++) {
      this.visits += 1;
      void kinds[n % kinds.length].call(this, n).catch(() => undefined);
      await sleep(PACE_MS);
    }
    // the last of them
    await sleep(STALL_MS);
  }

  /** Asks for much and leaves before the answer. */
  async leave(n) {
    const signal = AbortSignal.timeout(1 + ((n * 7) % 40));
    const vector = Array.from({ length: DIMENSION }, () => 1);
    await Promise.all([
      this.client.send('vector', '/vector/query', { body: { vector, topK: 100 }, signal }),
      this.client.send('kv', '/kv/pipeline', { body: Array(200).fill(['INCR', 'soak:left']), signal }),
      this.client.send('broker', '/broker/fetch', {
        body: { topic: TOPIC, partition: 0, offset: 0 },
        signal,
      }),
      this.client.send('queue', '/queue/v2/events', { method: 'GET', signal }),
    ]);
  }

  /** Sends half a request. */
  async half() {
    const head = `POST /vector/upsert HTTP/1.1\r\nhost: x\r\nauthorization: ${this.client.credentials.vector}\r\ncontent-length: 1000\r\n\r\n[{"id":`;
    await this.raw(head);
  }

  /** Asks for megabytes and reads none. */
  async unread() {
    const head = `GET /kv/get/soak:large HTTP/1.1\r\nhost: x\r\nauthorization: ${this.client.credentials.kv}\r\n\r\n`;
    await this.raw(head.repeat(3));
  }

  /** Listens to a channel and leaves. */
  async listener() {
    const head = `GET /kv/subscribe/soak HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\nauthorization: ${this.client.credentials.kv}\r\n\r\n`;
    await this.raw(head);
  }

  async raw(text) {
    const socket = connect(this.client.gateway.port, '127.0.0.1').on('error', () => undefined);
    await once(socket, 'connect');
    socket.pause();
    socket.write(text);
    await sleep(STALL_MS);
    socket.destroy();
  }

  /** A consumer of a group of its own that says good-bye. */
  async consumer(n) {
    const name = `soak-churn-${n % 5}/visitor`;
    await this.client.consume(`/broker/consume/${name}/${TOPIC}?timeout=500`, {});
    await this.client.leave(name);
  }

  /** One that does not. */
  async vanish(n) {
    await this.client.consume(`/broker/consume/soak-vanish-${n % 5}/visitor/${TOPIC}?timeout=200`, {});
  }
}
