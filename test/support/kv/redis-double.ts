import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { RespDecoder, type RespValue } from '../../../src/services/kv/resp/resp-decoder.js';

/** Speaks RESP2 and knows a few commands: for what a real server says in a moment that no test can hold. */
export interface RedisDouble {
  readonly url: string;
  /** Names (upper case) of commands and what is answered to them instead, error text first word and all. */
  readonly refusals: Map<string, string>;
  /** Names of the commands that came, in order. */
  readonly seen: string[];
  /** Breaks all connections. */
  cut(): void;
  stop(): Promise<void>;
}

/** The reply to COMMAND: name, arity, flags, first key, last key, step, categories. */
const TABLE = `*3\r\n${entry('get', ['readonly', 'fast'], '@read')}${entry('set', ['write'], '@write')}${entry('eval', ['noscript', 'movablekeys'], '@scripting')}`;

const REPLIES: Readonly<Record<string, string>> = {
  PING: '+PONG\r\n',
  COMMAND: TABLE,
  GET: '$1\r\nv\r\n',
  EVAL: ':1\r\n',
  DISCARD: '-ERR DISCARD without MULTI\r\n',
};

function entry(name: string, flags: readonly string[], category: string): string {
  const words = (all: readonly string[]) => `*${all.length}\r\n${all.map((word) => `+${word}\r\n`).join('')}`;
  return `*7\r\n$${name.length}\r\n${name}\r\n:-2\r\n${words(flags)}:1\r\n:1\r\n:1\r\n${words([category])}`;
}

export async function startRedisDouble(): Promise<RedisDouble> {
  const refusals = new Map<string, string>();
  const seen: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    const answer = answers(refusals);
    const decoder = new RespDecoder((command) => {
      const name = String((command as RespValue[])[0]).toUpperCase();
      seen.push(name);
      socket.write(answer(name));
    });
    socket.on('data', (chunk: Buffer) => decoder.write(chunk));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    refusals,
    seen,
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Of one connection: rows of a transaction are queued, and a refused one or EXEC discards it, as in Redis 6.2 and later. */
function answers(refusals: ReadonlyMap<string, string>): (name: string) => string {
  let queued: string[] | undefined;
  let broken = false;
  return (name) => {
    const refusal = refusals.get(name);
    if (name === 'EXEC' && queued !== undefined) {
      const rows = queued;
      queued = undefined;
      if (refusal !== undefined) return `-EXECABORT Transaction discarded because of: ${refusal}\r\n`;
      if (broken) return '-EXECABORT Transaction discarded because of previous errors.\r\n';
      return `*${rows.length}\r\n${rows.join('')}`;
    }
    if (refusal !== undefined) {
      broken = queued !== undefined;
      return `-${refusal}\r\n`;
    }
    if (name === 'MULTI') {
      queued = [];
      broken = false;
      return '+OK\r\n';
    }
    const reply = REPLIES[name] ?? '+OK\r\n';
    queued?.push(reply);
    return queued === undefined ? reply : '+QUEUED\r\n';
  };
}
