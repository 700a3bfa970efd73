import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP relay in front of a local port, by which a test holds up or breaks what passes. */
export interface TcpRelay {
  readonly port: number;
  /** From now on nothing of what the target says is passed on; connections stay open. */
  hold(): void;
  /** The same on connections on which the client says `text` from now on. */
  holdAnswersTo(text: string): void;
  release(): void;
  /** Breaks all connections and takes no new ones until `release`. */
  cut(): void;
  stop(): Promise<void>;
}

/** @param delayMs of what passes, each way: half of a round trip */
export async function startRelay(target: number, delayMs = 0): Promise<TcpRelay> {
  const pairs = new Map<Socket, Socket>();
  let state: 'open' | 'held' | 'cut' = 'open';
  let question: string | undefined;
  const server = createServer((client) => {
    client.on('error', () => undefined);
    if (state === 'cut') return client.destroy();
    const upstream = connect(target, '127.0.0.1').on('error', () => undefined);
    pairs.set(client, upstream);
    client.on('data', (chunk: Buffer) => {
      if (question !== undefined && chunk.includes(question)) upstream.pause();
    });
    if (delayMs === 0) client.pipe(upstream);
    else client.on('data', (chunk: Buffer) => setTimeout(() => upstream.write(chunk), delayMs));
    upstream.on('data', (chunk: Buffer) => {
      if (delayMs === 0) client.write(chunk);
      else setTimeout(() => client.write(chunk), delayMs);
    });
    if (state === 'held') upstream.pause();
    const end = () => {
      pairs.delete(client);
      client.destroy();
      upstream.destroy();
    };
    client.on('close', end);
    return upstream.on('close', end);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const each = (act: (client: Socket, upstream: Socket) => void) => {
    for (const [client, upstream] of pairs) act(client, upstream);
  };
  return {
    port: (server.address() as AddressInfo).port,
    hold: () => {
      state = 'held';
      each((_, upstream) => upstream.pause());
    },
    holdAnswersTo: (text) => {
      question = text;
    },
    release: () => {
      state = 'open';
      question = undefined;
      each((_, upstream) => upstream.resume());
    },
    cut: () => {
      state = 'cut';
      each((client) => client.destroy());
    },
    stop: async () => {
      each((client) => client.destroy());
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
