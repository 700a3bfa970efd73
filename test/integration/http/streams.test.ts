import { z } from 'zod';
import { HttpError } from '../../../src/http/errors.js';
import type { RawStream, StreamSink } from '../../../src/http/raw-stream.js';
import type { BoundRoute, RouteContext } from '../../../src/http/route.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { largeReply, startHttpCore, TOKEN } from '../../support/http-instance.js';
import { RawClient } from '../../support/raw-client.js';

const AUTH = { authorization: `Bearer ${TOKEN}` };

/** Streams that a test opened, and what became of them. */
class Streams {
  readonly sinks: StreamSink[] = [];
  readonly contexts: RouteContext[] = [];
  closed = 0;
  heartbeat: RawStream['heartbeat'];
  onOpen: (sink: StreamSink) => void = () => undefined;

  readonly route: BoundRoute = {
    kind: 'raw',
    operationId: 'test.stream',
    summary: 'Goes on.',
    methods: ['GET', 'POST'],
    path: '/stream',
    reply: z.unknown(),
    handle: async ({ body }, context) => {
      if (body.length > 0) throw new HttpError('unprocessable', 'not with a body');
      this.contexts.push(context);
      return {
        status: 200,
        contentType: 'text/event-stream',
        headers: { 'X-Own': 'yes' },
        ...(this.heartbeat === undefined ? {} : { heartbeat: this.heartbeat }),
        open: (sink) => {
          this.sinks.push(sink);
          sink.onClose(() => {
            this.closed += 1;
          });
          this.onOpen(sink);
        },
      };
    },
  };

  /** The one opened last. */
  get sink(): StreamSink {
    return this.sinks.at(-1) as StreamSink;
  }
}

/** Makes the instance one that Express' router serves. */
const BESIDE: BoundRoute = {
  kind: 'json',
  operationId: 'test.beside',
  summary: 'Is no raw route.',
  methods: ['GET'],
  path: '/beside/:name',
  reply: z.unknown(),
  handle: async () => ({}),
};

async function startStreams(settings: Record<string, unknown> = {}, more: readonly BoundRoute[] = []) {
  const streams = new Streams();
  const core = await startHttpCore(settings, { routes: [streams.route, ...more] });
  const open = async (head = 'GET /test/stream HTTP/1.1', headers = ''): Promise<RawClient> => {
    const client = await RawClient.open(core.port);
    client.write(`${head}\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n${headers}\r\n`);
    return client;
  };
  const metric = async (name: string) => {
    const text = await (await fetch(`${core.url}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  };
  return { core, streams, open, metric };
}

describe.each([
  ['the raw front', []],
  ["Express' router", [BESIDE]],
])('a stream through %s', (_, more) => {
  let all: Awaited<ReturnType<typeof startStreams>>;
  beforeEach(async () => {
    all = await startStreams({}, more);
  });
  afterEach(() => all.core.stop());

  it('sends its head at once, then each chunk, then its end', async () => {
    const reply = await fetch(`${all.core.url}/test/stream`, { method: 'POST', headers: AUTH });
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toBe('text/event-stream');
    expect(reply.headers.get('cache-control')).toBe('no-store, no-cache');
    expect(reply.headers.get('x-own')).toBe('yes');
    expect(reply.headers.get('x-request-id')).toMatch(/./);
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
    const reader = (reply.body as ReadableStream<Uint8Array>).getReader();
    const next = async () => Buffer.from((await reader.read()).value ?? []).toString();
    all.streams.sink.write('data: a\n\n');
    expect(await next()).toBe('data: a\n\n');
    all.streams.sink.write(Buffer.from('data: é\n\n'));
    expect(await next()).toBe('data: é\n\n');
    all.streams.sink.end();
    all.streams.sink.write('too late');
    expect((await reader.read()).done).toBe(true);
    await eventually(() => expect(all.streams.closed).toBe(1));
    expect(all.streams.contexts[0]?.signal.aborted).toBe(false);
  });

  it('answers an error before the stream as usual, and a wrong token', async () => {
    const refused = await fetch(`${all.core.url}/test/stream`, { method: 'POST', headers: AUTH, body: 'x' });
    expect(refused.status).toBe(422);
    expect(await refused.json()).toMatchObject({ code: 'unprocessable' });
    expect((await fetch(`${all.core.url}/test/stream`)).status).toBe(401);
    expect(all.streams.sinks).toHaveLength(0);
  });

  it('answers HEAD by the head alone and keeps the connection', async () => {
    const client = await all.open('HEAD /test/stream HTTP/1.1');
    await client.until(/\r\n\r\n/);
    client.write(
      `POST /test/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 1\r\n\r\nx`,
    );
    expect(await client.until(/unprocessable/)).toMatch(
      /^HTTP\/1.1 200 OK\r\n(?:[^\r]+\r\n)*Content-Type: text\/event-stream\r\n(?:[^\r]+\r\n)*\r\nHTTP\/1.1 422 /,
    );
    expect(all.streams.sinks).toHaveLength(0);
    client.end();
  });

  it('frees everything once when the client leaves', async () => {
    const client = await all.open();
    await client.until(/\r\n\r\n/);
    expect(await all.metric('portico_http_streams_open')).toBe(1);
    client.end();
    await eventually(() => expect(all.streams.closed).toBe(1));
    expect(all.streams.sink.isOver).toBe(true);
    expect(all.streams.contexts[0]?.signal.aborted).toBe(true);
    all.streams.sink.end();
    let late = 0;
    all.streams.sink.onClose(() => {
      late += 1;
    });
    expect(late).toBe(1);
    expect(all.streams.closed).toBe(1);
    expect(await all.metric('portico_http_streams_open')).toBe(0);
  });
});

it('ends by closing the connection for a client of HTTP/1.0', async () => {
  const { core, streams, open } = await startStreams();
  const client = await open('GET /test/stream HTTP/1.0');
  await client.until(/\r\n\r\n/);
  streams.sink.write('data: a\n\n');
  await client.until(/data: a\n\n$/);
  streams.sink.end();
  const reply = await client.closed();
  expect(reply).toMatch(/\r\nConnection: close\r\n/i);
  expect(reply).not.toMatch(/transfer-encoding/i);
  expect(reply.endsWith('\r\n\r\ndata: a\n\n')).toBe(true);
  await core.stop();
});

it('has no deadline, and keeps a silent stream alive by its heartbeat', async () => {
  // shorter in all: deadline of the instance 4 s, what a request, a reply and an idle connection may take
  const times = { requestTimeoutMs: 2_000, replyIdleTimeoutMs: 2_000, keepAliveTimeoutMs: 2_000 };
  const { core, streams, open } = await startStreams(times);
  streams.heartbeat = { everyMs: 1_000, text: ': ping\n\n' };
  const client = await open();
  expect(await client.until(/(: ping[\s\S]*){5}/)).not.toContain('HTTP/1.1 504');
  expect(streams.closed).toBe(0);
  client.end();
  await eventually(() => expect(streams.closed).toBe(1));
  await core.stop();
});

it('leaves a silent stream without heartbeat alone', async () => {
  const { core, streams, open } = await startStreams({ replyIdleTimeoutMs: 300, keepAliveTimeoutMs: 300 });
  const client = await open();
  await client.until(/\r\n\r\n/);
  await new Promise((resolve) => setTimeout(resolve, 900));
  streams.sink.write('data: still\n\n');
  await client.until(/still/);
  expect(streams.closed).toBe(0);
  client.end();
  await core.stop();
});

describe('a reader that does not keep up', () => {
  it('is cut when more than the configured bytes wait for it', async () => {
    const { core, streams, open } = await startStreams({ streamBufferBytes: 100_000 });
    const client = await open();
    await client.until(/\r\n\r\n/);
    client.socket.pause();
    const chunk = 'x'.repeat(50_000);
    let written = 0;
    // the system's own buffers take some megabytes first
    await eventually(() => {
      if (!streams.sink.isOver) {
        streams.sink.write(chunk);
        written += chunk.length;
      }
      expect(streams.closed).toBe(1);
    });
    expect(written).toBeGreaterThan(100_000);
    client.end();
    await core.stop();
  });

  it('counts among all that waits, and keeps little of its buffer when that is too much', async () => {
    const MIB = 1024 * 1024;
    const { core, streams, open } = await startStreams({
      replyBufferBytes: 4 * MIB,
      streamBufferBytes: 3 * MIB,
    });
    const clients = await Promise.all([open(), open(), open()]);
    for (const client of clients) {
      await client.until(/\r\n\r\n/);
      client.socket.pause();
    }
    const chunk = 'x'.repeat(50_000);
    // each alone would be let wait with 3 MiB
    await eventually(() => {
      for (const sink of streams.sinks) if (!sink.isOver) sink.write(chunk);
      expect(core.core.replies.waiting).toBeLessThanOrEqual(4 * MIB + 3 * chunk.length);
      expect(streams.closed).toBeGreaterThan(0);
    });
    for (const client of clients) client.end();
    await eventually(() => expect(streams.closed).toBe(3));
    expect(core.core.replies.waiting).toBe(0);
    await core.stop();
  });

  it('gets a single chunk, and a burst, above that size when it reads', async () => {
    const { core, streams, open } = await startStreams({ streamBufferBytes: 1_024 });
    const client = await open();
    await client.until(/\r\n\r\n/);
    for (let i = 0; i < 20; i++) streams.sink.write('y'.repeat(2_000));
    streams.sink.write(`${'z'.repeat(3_000_000)}END`);
    await client.until(/END/);
    streams.sink.write('data: more\n\n');
    await client.until(/more/);
    client.end();
    await core.stop();
  });

  it('is cut when it takes nothing for too long', async () => {
    const { core, streams, open } = await startStreams({ replyIdleTimeoutMs: 300 });
    const client = await open();
    await client.until(/\r\n\r\n/);
    client.socket.pause();
    streams.sink.write('x'.repeat(20_000_000));
    await eventually(() => expect(streams.closed).toBe(1));
    client.end();
    await core.stop();
  });
});

describe('when the gateway stops', () => {
  it('ends streams cleanly and opens no further one', async () => {
    const { core, streams, open } = await startStreams();
    const clients = [await open(), await open('GET /test/stream HTTP/1.0')];
    for (const client of clients) await client.until(/\r\n\r\n/);
    const kept = await open('GET /test/nothing HTTP/1.1');
    await kept.until(/not_found/);
    streams.contexts[0]?.stopping.addEventListener('abort', () => streams.sinks[0]?.write('data: bye\n\n'));
    const started = performance.now();
    core.core.beginStop();
    const stop = core.stop();
    kept.write(`GET /test/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
    expect(await kept.closed()).toMatch(/HTTP\/1.1 503[\s\S]*stopping/);
    expect(await clients[0]?.closed()).toMatch(/data: bye\n\n\r\n0\r\n\r\n$/);
    await clients[1]?.closed();
    await stop;
    expect(performance.now() - started).toBeLessThan(PROMPT_MS);
    expect(streams.closed).toBe(2);
  });

  it('waits a second and no longer for a reader that does not take the end', async () => {
    const { core, streams, open } = await startStreams();
    const client = await open();
    await client.until(/\r\n\r\n/);
    client.socket.pause();
    streams.sink.write('x'.repeat(20_000_000));
    const started = performance.now();
    core.core.beginStop();
    await core.server.drain(10_000);
    expect(performance.now() - started).toBeLessThan(PROMPT_MS);
    await eventually(() => expect(streams.closed).toBe(1));
    client.end();
    await core.stop();
  });
});

it('cuts the connection when a handler fails after the head', async () => {
  const { core, streams, open } = await startStreams();
  streams.onOpen = () => {
    throw new Error('text with a secret');
  };
  const client = await open();
  const text = await client.closed();
  expect(text).toContain('HTTP/1.1 200');
  expect(text).not.toMatch(/secret|\r\n0\r\n/);
  await eventually(() => expect(streams.closed).toBe(1));
  await core.stop();
});

it('counts a stream at its end by the time to its head, and not as a request in flight', async () => {
  const { core, streams, open, metric } = await startStreams({ maxInFlight: 1 });
  const series =
    'portico_http_request_duration_seconds_(?:sum|count)\\{operation="test.stream",status="200"\\}';
  const clients = [await open(), await open(), await open()];
  for (const client of clients) expect(await client.until(/\r\n\r\n/)).toContain('HTTP/1.1 200');
  expect(await metric('portico_http_streams_open')).toBe(3);
  expect(await metric(series)).toBeNaN();
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  for (const client of clients) client.end();
  await eventually(() => expect(streams.closed).toBe(3));
  expect(await metric(series.replace('(?:sum|count)', 'count'))).toBe(3);
  expect(await metric(series.replace('(?:sum|count)', 'sum'))).toBeLessThan(3);
  expect(await metric('portico_http_streams_open')).toBe(0);
  await core.stop();
});

describe('behind another request on the same connection', () => {
  it('opens in its turn', async () => {
    const { core, streams, open } = await startStreams({}, [largeReply(10)]);
    const client = await open('GET /test/large HTTP/1.1');
    client.write(`GET /test/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
    await eventually(() => expect(streams.sinks).toHaveLength(1));
    streams.sink.write('data: a\n\n');
    expect(await client.until(/data: a/)).toMatch(/END[\s\S]*text\/event-stream/);
    client.end();
    await eventually(() => expect(streams.closed).toBe(1));
    await core.stop();
  });

  it('is freed when the connection breaks before that, like any request', async () => {
    const { core, streams, open } = await startStreams({}, [largeReply(10)]);
    const client = await open();
    await client.until(/\r\n\r\n/);
    const head = `HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;
    client.write(`GET /test/large ${head}GET /test/stream ${head}`);
    await eventually(() => expect(streams.sinks).toHaveLength(2));
    expect(core.core.inFlight).toBe(1);
    client.end();
    await eventually(() => expect(streams.closed).toBe(2));
    expect({ inFlight: core.core.inFlight, streams: core.core.streams }).toEqual({ inFlight: 0, streams: 0 });
    await core.stop();
  });
});
