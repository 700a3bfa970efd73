import { z } from 'zod';
import { type BoundRoute, Pieces } from '../../../src/http/route.js';
import { eventually } from '../../support/eventually.js';
import { startHttpCore, TOKEN } from '../../support/http-instance.js';
import { RawClient } from '../../support/raw-client.js';

/** Replies that are made piece by piece: how many have begun and are not done. */
class Lists {
  open = 0;
  most = 0;
  made = 0;

  readonly route: BoundRoute = {
    kind: 'raw',
    operationId: 'test.list',
    summary: 'Answers a list.',
    methods: ['GET'],
    path: '/list',
    reply: z.unknown(),
    handle: async () => new Pieces('application/json', this.pieces(++this.made)),
  };

  private async *pieces(number: number): AsyncGenerator<string> {
    this.open += 1;
    this.most = Math.max(this.most, this.open);
    try {
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (number === 2) throw new Error('what a driver says');
      yield `[${number},"${'x'.repeat(100_000)}"`;
      yield ']';
    } finally {
      this.open -= 1;
    }
  }
}

const REQUEST = `GET /test/list HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;
let lists: Lists;
let core: Awaited<ReturnType<typeof startHttpCore>>;

beforeEach(async () => {
  lists = new Lists();
  core = await startHttpCore({}, { routes: [lists.route], timeoutMs: 400 });
});
afterEach(() => core.stop());

it('of lists that are asked for at once on one connection one is made after the other, in their order', async () => {
  const client = await RawClient.open(core.port);
  // all together take longer than one may
  client.write(REQUEST.repeat(39) + REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
  const all = await client.closed();
  expect(lists.most).toBe(1);
  expect([...all.matchAll(/\[(\d+),"/g)].map(([, number]) => Number(number))).toEqual(
    Array.from({ length: 40 }, (_, i) => i + 1).filter((number) => number !== 2),
  );
  // what fails before its first piece is an error as any other
  expect(all.match(/HTTP\/1\.1 500/g)).toHaveLength(1);
  client.end();
});

it('a client that leaves has none of those made that waited', async () => {
  const client = await RawClient.open(core.port);
  client.write(REQUEST.repeat(8));
  await client.until(/\[1,"x+/);
  client.end();
  await eventually(() => expect(core.core.inFlight).toBe(0));
  await eventually(() => expect(lists.open).toBe(0));
  expect(lists.most).toBe(1);
});
