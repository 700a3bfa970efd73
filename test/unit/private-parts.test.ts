import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, get, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import express from 'express';
import { Redis } from 'ioredis';
import RequestQueue from 'kafkajs/src/network/requestQueue/index.js';
import { Client, Pool } from 'pg';
import { buildConnector, Agent as UndiciAgent } from 'undici';
import { z } from 'zod';
import { acceptHeadBlock } from '../../src/http/head/head-block.js';
import { securityHeaders } from '../../src/http/head/security-headers.js';
import { Metrics } from '../../src/http/monitoring/metrics.js';
import { isPoolBusy } from '../../src/lib/postgres/postgres-errors.js';
import { settingLeaves } from '../../src/lib/settings/settings-tree.js';
import {
  apiVersionsCall,
  callOf,
  createConnection,
  errorType,
} from '../../src/services/broker/kafka/kafkajs-internals.js';

/**
 * What Portico uses of Node and of packages that their documentation does not promise. Each part has its test, so that a new
 * version which changes one fails here, by name; docs/private-parts.md lists the same parts with their reasons.
 */
const parts = new Map<string, string>();

/** @param place the file that relies on the part */
function relies(part: string, place: string, prove: () => unknown): void {
  parts.set(part, place);
  it(`${part} is as ${place} needs it`, async () => {
    try {
      await prove();
    } catch (cause) {
      throw new Error(
        `${part} has changed (Node ${process.version}, see docs/private-parts.md): ${place} relies on it. ${(cause as Error).message}`,
        { cause },
      );
    }
  });
}

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

async function listening<Kind extends Server>(server: Kind): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.on('connection', (socket) => closers.push(() => socket.destroy()));
  closers.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** A request of bytes, and all that came back until the connection ended. */
async function exchange(port: number, request: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('utf8');
  closers.push(() => socket.destroy());
  let reply = '';
  socket.on('data', (text) => {
    reply += text;
  });
  socket.write(request);
  await once(socket, 'close');
  return reply;
}

const LAST = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

describe('Node', () => {
  relies('ServerResponse._storeHeader', 'src/http/head/head-block.ts', async () => {
    class Response extends ServerResponse {
      headBlock = 'X-Of-The-Block: yes\r\n';
    }
    acceptHeadBlock(Response.prototype);
    const server = createServer({ ServerResponse: Response }, (_, response) => response.end('ok'));
    expect(await exchange(await listening(server), LAST)).toMatch(
      /^HTTP\/1\.1 200 OK\r\nX-Of-The-Block: yes\r\n/,
    );
  });

  relies('net.Server.prototype.close on an HTTP server', 'src/http/server/server.ts', async () => {
    const server = createServer((_, response) => response.end('ok'));
    const port = await listening(server);
    const agent = new Agent({ keepAlive: true });
    closers.push(() => agent.destroy());
    const reply = await new Promise<IncomingMessage>((resolve) =>
      get({ port, host: '127.0.0.1', agent }, resolve),
    );
    const { socket } = reply;
    reply.resume();
    await once(reply, 'end');
    let isClosed = false;
    const closed = new Promise<void>((resolve) => {
      Server.prototype.close.call(server, () => {
        isClosed = true;
        resolve();
      });
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    // HTTP's own close would have cut the idle connection
    expect([socket.destroyed, isClosed]).toEqual([false, false]);
    server.closeIdleConnections();
    await closed;
  });

  relies('Socket.destroySoon', 'src/http/exchange/over-listeners.ts', async () => {
    let calls = 0;
    const server = createServer((request, response) => {
      const { socket } = request;
      socket.destroySoon = () => {
        calls += 1;
        socket.end();
      };
      response.end('ok');
    });
    await exchange(await listening(server), LAST);
    expect(calls).toBe(1);
  });

  relies("a response's event 'socket'", 'src/http/exchange/exchange.ts', async () => {
    const seen: string[] = [];
    const waiting: ServerResponse[] = [];
    const server = createServer((_, response) => {
      seen.push(response.socket === null ? 'waits' : 'has it');
      response.once('socket', () => {
        seen.push('gets it');
        response.end('two');
      });
      waiting.push(response);
      if (waiting.length === 2) waiting[0]?.end('one');
    });
    await exchange(await listening(server), `GET / HTTP/1.1\r\nHost: a\r\n\r\n${LAST}`);
    expect(seen).toEqual(['has it', 'waits', 'gets it']);
  });

  relies("the place of Node's own listener of 'finish'", 'src/http/exchange/exchange.ts', async () => {
    const seen: boolean[] = [];
    const server = createServer((_, response) => {
      response.on('finish', () => seen.push(response.socket !== null));
      response.prependOnceListener('finish', () => seen.push(response.socket !== null));
      response.end('ok');
    });
    await exchange(await listening(server), LAST);
    // before it the response has its socket, whose time Node then sets; after it none
    expect(seen).toEqual([true, false]);
  });

  relies('worker.exitedAfterDisconnect', 'src/workers/worker.ts', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portico-test-'));
    const script = join(folder, 'cluster.cjs');
    writeFileSync(
      script,
      `const cluster = require('node:cluster');
       if (cluster.isPrimary) {
         const worker = cluster.fork();
         worker.on('message', () => worker.process.disconnect());
         worker.on('exit', (code) => console.log(code));
       } else {
         cluster.worker.on('disconnect', () => {
           cluster.worker.exitedAfterDisconnect = true;
           setTimeout(() => process.exit(7), 20);
         });
         process.send('ready');
       }`,
    );
    closers.push(() => rmSync(folder, { recursive: true }));
    const code = await new Promise<string>((resolve, reject) =>
      execFile(process.execPath, [script], (error, out) => (error ? reject(error) : resolve(out.trim()))),
    );
    // Node would have ended the worker at once, with 0
    expect(code).toBe('7');
  });

  relies("the position in V8's words on text that is no JSON", 'src/http/body.ts', () => {
    expect(() => JSON.parse('{"a":1,}')).toThrow(/position 7/);
  });
});

describe('Express', () => {
  relies('express.request and express.response as prototypes', 'src/http/server/app.ts', async () => {
    class Request extends IncomingMessage {}
    class Response extends ServerResponse {}
    const app = express();
    for (const [kind, { prototype }] of [
      ['request', Request],
      ['response', Response],
    ] as const) {
      Object.setPrototypeOf(prototype, express[kind]);
      Object.defineProperty(prototype, 'app', { value: app, configurable: true, writable: true });
      Object.defineProperty(app, kind, { value: prototype, configurable: true, writable: true });
    }
    let kept: unknown[] = [];
    app.use((request, response) => {
      kept = [Object.getPrototypeOf(request), Object.getPrototypeOf(response)];
      response.json({ host: request.get('host') });
    });
    const server = createServer(
      { IncomingMessage: Request, ServerResponse: Response as typeof ServerResponse },
      (request, response) => app(request as express.Request, response as express.Response),
    );
    expect(await exchange(await listening(server), LAST)).toMatch(/\{"host":"a"\}$/);
    expect(kept).toEqual([Request.prototype, Response.prototype]);
  });
});

describe('helmet', () => {
  relies('helmet on a request that is none', 'src/http/head/security-headers.ts', () => {
    const headers = securityHeaders(false);
    expect(headers).toContain('Strict-Transport-Security');
    expect(headers.length / 2).toBeGreaterThanOrEqual(12);
  });
});

describe('ioredis', () => {
  const commandsIn = (text: string) => text.match(/^\*\d+\r$/gm)?.length ?? 0;

  relies('redis.stream and its listeners of data', 'src/services/kv/redis/connection.ts', async () => {
    const server = createTcpServer((socket) => {
      socket.setEncoding('utf8').on('data', (text: string) => {
        if (text === 'ours') socket.write('theirs');
        else socket.write('+OK\r\n'.repeat(commandsIn(text)));
      });
      socket.on('error', () => undefined);
    });
    const port = await listening(server);
    const redis = new Redis({ port, host: '127.0.0.1', protocol: 2, enableReadyCheck: false });
    closers.push(() => redis.disconnect());
    await once(redis, 'ready');
    const socket = redis.stream as Socket;
    expect(socket).toBeInstanceOf(Socket);
    socket.removeAllListeners('data');
    socket.write('ours');
    const [bytes] = await once(socket, 'data');
    expect([String(bytes), redis.status]).toEqual(['theirs', 'ready']);
  });

  relies("the words 'All sentinels are unreachable'", 'src/services/kv/redis/connection.ts', async () => {
    // one that answers and knows nothing: behind one that refuses, ioredis leaves a timer of 2 s, which keeps the process
    const server = createTcpServer((socket) => {
      socket.setEncoding('utf8').on('data', (text: string) => {
        socket.write('-ERR unknown\r\n'.repeat(commandsIn(text)));
      });
      socket.on('error', () => undefined);
    });
    const port = await listening(server);
    const redis = new Redis({
      sentinels: [{ host: '127.0.0.1', port }],
      name: 'primary',
      sentinelRetryStrategy: () => null,
    });
    closers.push(() => redis.disconnect());
    const [error] = await once(redis, 'error');
    expect(error.message).toMatch(/^All sentinels are unreachable/);
  });
});

describe('kafkajs', () => {
  relies('its seven inner modules', 'src/services/broker/kafka/kafkajs-internals.ts', () => {
    const connection = createConnection({
      host: '127.0.0.1',
      port: 1,
      clientId: 'a',
      connectTimeoutMs: 1,
      logCreator: () => () => undefined,
      ssl: null,
      sasl: null,
    });
    for (const name of [
      'connect',
      'disconnect',
      'send',
      'setVersions',
      'authenticate',
      'isConnected',
    ] as const)
      expect([name, typeof connection[name]]).toEqual([name, 'function']);
    expect(typeof connection.requestQueue.rejectAll).toBe('function');
    expect(apiVersionsCall().request).toMatchObject({ apiKey: 18, apiVersion: 2 });
    const versions = { 3: { minVersion: 0, maxVersion: 12 } };
    expect(callOf(versions, 'Metadata', { topics: [] }).request).toMatchObject({ apiKey: 3 });
    expect(errorType(6)).toBe('NOT_LEADER_FOR_PARTITION');
  });

  relies(
    'RequestQueue.scheduleCheckPendingRequests',
    'src/services/broker/kafka/kafkajs-internals.ts',
    () => {
      expect(typeof RequestQueue.prototype.scheduleCheckPendingRequests).toBe('function');
      const { version } = JSON.parse(readFileSync('node_modules/kafkajs/package.json', 'utf8'));
      expect(version).toBe('2.2.4');
    },
  );
});

describe('amqplib', () => {
  const inner = (file: string) => require(join(process.cwd(), 'node_modules/amqplib/lib', file));

  relies('connection.stream', 'src/services/queue/rabbitmq/client.ts', () => {
    const { Connection } = inner('connection.js');
    const stream = new Duplex({ read: () => undefined, write: () => undefined });
    expect(new Connection(stream).stream).toBe(stream);
  });

  relies("the word 'nacked'", 'src/services/queue/rabbitmq/publisher.ts', () => {
    const { Channel } = inner('channel.js');
    const channel = new Channel({});
    const told: unknown[] = [];
    channel.unconfirmed.push((error: unknown) => told.push(error));
    channel.emit('nack', { deliveryTag: 1, multiple: false });
    expect(told).toEqual([expect.objectContaining({ message: expect.stringMatching(/nacked/) })]);
  });
});

describe('undici', () => {
  relies(
    'the error of a socket whose headers are too long',
    'src/lib/outbound/unasked-continue.ts',
    async () => {
      const server = createTcpServer((socket) => {
        socket.on('error', () => undefined);
        socket.write(`HTTP/1.1 200 OK\r\nLong: ${'x'.repeat(10_000)}\r\n`);
      });
      const port = await listening(server);
      const errors: unknown[] = [];
      const connector = buildConnector({});
      const agent = new UndiciAgent({
        maxHeaderSize: 5_000,
        connect: (options, callback) =>
          connector(options, (error, socket) => {
            if (error !== null) return callback(error, null);
            const destroy = socket.destroy.bind(socket);
            socket.destroy = (reason?: Error) => {
              errors.push(reason);
              return destroy(reason);
            };
            callback(null, socket);
          }),
      });
      closers.push(() => void agent.destroy());
      const failure = await agent
        .request({ origin: `http://127.0.0.1:${port}`, path: '/', method: 'GET' })
        .catch((error) => error);
      expect(failure).toMatchObject({ code: 'UND_ERR_HEADERS_OVERFLOW' });
      expect(errors[0]).toBe(failure);
    },
  );
});

describe('pg', () => {
  relies('client.processID', 'src/lib/postgres/postgres-cancel.ts', () => {
    expect(new Client()).toHaveProperty('processID', null);
  });

  relies('its words on a pool that is busy', 'src/lib/postgres/postgres-errors.ts', async () => {
    const server = createTcpServer((socket) => socket.on('error', () => undefined));
    const port = await listening(server);
    const pool = new Pool({ port, host: '127.0.0.1', max: 1, connectionTimeoutMillis: 50 });
    const [first, second] = await Promise.allSettled([pool.connect(), pool.connect()]);
    const reasons = [first, second].map((one) => (one.status === 'rejected' ? one.reason : undefined));
    expect(reasons.map((reason) => isPoolBusy(reason))).toContain(true);
    await pool.end();
  });
});

describe('prom-client', () => {
  relies('a metric that is not of its classes', 'src/http/monitoring/metrics.ts', async () => {
    const metrics = new Metrics();
    metrics.add({
      name: 'made_up',
      help: 'h',
      type: 'gauge',
      collect: () => [{ labels: { a: 'b' }, value: 3 }],
    });
    expect(await metrics.text()).toContain('made_up{a="b"} 3');
  });
});

describe('zod', () => {
  relies('schema.def', 'src/lib/settings/settings-tree.ts', () => {
    const schema = z.object({ port: z.number().default(8070).describe('p'), names: z.array(z.string()) });
    expect(settingLeaves(schema)).toMatchObject([
      { path: ['port'], type: 'number', byDefault: 8070, description: 'p' },
      { path: ['names'], type: 'list' },
    ]);
  });
});

it('are those that docs/private-parts.md lists', () => {
  const rows = readFileSync('docs/private-parts.md', 'utf8').matchAll(/^\| (.+?) \| `(src\/[^`]+)` \|/gm);
  const listed = [...rows].map(([, part = '', place = '']) => [part.replaceAll('`', ''), place]);
  expect(listed).toEqual([...parts]);
  for (const [, place] of listed) expect([place, existsSync(place ?? '')]).toEqual([place, true]);
});
