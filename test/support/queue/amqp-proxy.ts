import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';
import { backendAddress } from '../environment.js';

/** Stands between gateways and the real RabbitMQ, and says to them what RabbitMQ says in trouble. */
export interface AmqpProxy {
  readonly url: string;
  /** As in a memory alarm: `connection.blocked`, and then nothing more is read from clients that publish. */
  block(): void;
  unblock(): void;
  /** `channel.close` for channel 1 of every connection. */
  closeChannels(): void;
  /** Cuts every connection. */
  cut(): void;
  stop(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

/** A method frame (AMQP 0-9-1, section 2.3.5). */
function methodFrame(channel: number, classId: number, methodId: number, content: Buffer): Buffer {
  const frame = Buffer.alloc(7 + 4 + content.length + 1);
  frame.writeUInt8(1, 0);
  frame.writeUInt16BE(channel, 1);
  frame.writeUInt32BE(4 + content.length, 3);
  frame.writeUInt16BE(classId, 7);
  frame.writeUInt16BE(methodId, 9);
  content.copy(frame, 11);
  frame.writeUInt8(0xce, frame.length - 1);
  return frame;
}

const shortText = (text: string) => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
const BLOCKED = methodFrame(0, 10, 60, shortText('low on memory'));
const UNBLOCKED = methodFrame(0, 10, 61, Buffer.alloc(0));
const CLOSE = methodFrame(
  1,
  20,
  40,
  Buffer.concat([Buffer.from([0x01, 0x96]), shortText('PRECONDITION_FAILED'), Buffer.alloc(4)]),
);

export async function startAmqpProxy(): Promise<AmqpProxy> {
  const target = new URL(backendAddress('PORTICO_RABBITMQ_URL'));
  const pairs = new Set<Pair>();
  let blocked = false;
  const server = createServer((client) => {
    const pair: Pair = { client, server: connect(Number(target.port), target.hostname) };
    pairs.add(pair);
    // a new connection during the alarm is blocked as soon as it publishes; so early it is none that matters here
    client.pipe(pair.server);
    forwardFrames(pair);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      pair.server.destroy();
    };
    for (const socket of [client, pair.server]) socket.on('error', end).on('close', end);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  const say = (frame: Buffer) => {
    for (const { client } of pairs) client.write(frame);
  };
  return {
    url: url.href,
    block: () => {
      blocked = true;
      for (const { client } of pairs) client.unpipe();
      say(BLOCKED);
    },
    unblock: () => {
      if (!blocked) return;
      blocked = false;
      for (const pair of pairs) pair.client.pipe(pair.server);
      say(UNBLOCKED);
    },
    closeChannels: () => say(CLOSE),
    cut: () => {
      for (const { client } of pairs) client.destroy();
    },
    stop: () => {
      for (const { client } of pairs) client.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Whole frames only, so that another one fits between two of them. */
function forwardFrames({ client, server }: Pair): void {
  let kept = Buffer.alloc(0);
  server.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]);
    let end = 0;
    while (kept.length - end >= 7) {
      const size = 7 + kept.readUInt32BE(end + 3) + 1;
      if (kept.length - end < size) break;
      end += size;
    }
    if (end > 0) client.write(kept.subarray(0, end));
    kept = kept.subarray(end);
  });
}
