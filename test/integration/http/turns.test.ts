import { z } from 'zod';
import type { BoundRoute } from '../../../src/http/route.js';
import { eventually } from '../../support/eventually.js';
import { largeReply, startHttpCore, TOKEN } from '../../support/http-instance.js';
import { RawClient } from '../../support/raw-client.js';
import { stopAfterEach } from '../../support/stop-after-each.js';

const later = stopAfterEach();
const LARGE = 20;
const BODY = 'x'.repeat(50_000);

/** Says in which order bodies were worked on; a large one takes 20 ms of the loop. */
function working(order: string[]): BoundRoute {
  return {
    kind: 'raw',
    operationId: 'test.work',
    summary: 'Works on its body.',
    methods: ['POST'],
    path: '/work',
    reply: z.unknown(),
    handle: async ({ body }) => {
      const isLarge = body.length === BODY.length;
      order.push(isLarge ? 'large' : 'small');
      const end = performance.now() + (isLarge ? 20 : 0);
      while (performance.now() < end);
      return { status: 200, body: '{}' };
    },
  };
}

it('takes up a small request between any two large ones, however many came before it', async () => {
  const order: string[] = [];
  const core = later(await startHttpCore({}, { routes: [working(order)] }));
  const request = (body: string) =>
    `POST /test/work HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const clients = await Promise.all(Array.from({ length: LARGE + 1 }, () => RawClient.open(core.port)));
  const answers = async (count: number) => {
    for (const client of clients) {
      const replies = (await client.untilReplies(count, '{}')).match(/HTTP\/1.1 200 /g);
      expect(replies).toHaveLength(count);
    }
  };
  // a server takes up one new connection a turn of the loop
  for (const client of clients) client.write(request('first'));
  await answers(1);
  order.length = 0;
  // all of them are in the server's sockets before it looks at the first
  for (const [i, client] of clients.entries()) client.write(request(i < LARGE ? BODY : 'small'));
  await answers(2);
  expect(order).toHaveLength(LARGE + 1);
  expect(order.indexOf('small')).toBeLessThan(LARGE / 4);
  for (const client of clients) client.end();
});

it('takes up the request of another between thousands that one connection sent at once, and answers those in order', async () => {
  const order: string[] = [];
  const noting: BoundRoute = {
    kind: 'raw',
    operationId: 'test.note',
    summary: 'Notes what is asked.',
    methods: ['GET'],
    path: '/note/:name',
    reply: z.unknown(),
    handle: ({ target }) => {
      order.push(target);
      return Promise.resolve({ status: 200, body: target });
    },
  };
  const core = later(await startHttpCore({}, { routes: [noting] }));
  const request = (name: string) =>
    `GET /test/note/${name} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;
  const [many, other] = await Promise.all([RawClient.open(core.port), RawClient.open(core.port)]);
  for (const client of [many, other]) client.write(request('first'));
  for (const client of [many, other]) await client.until(/first$/);
  order.length = 0;
  const COUNT = 6_000;
  const names = Array.from({ length: COUNT }, (_, i) => `n${i}-`);
  many.write(names.map(request).join(''));
  other.write(request('other'));
  await other.until(/other$/);
  const answers = await many.until(new RegExp(`n${COUNT - 1}-$`));
  const paths = order.filter((path) => !path.endsWith('other'));
  expect(paths).toEqual(names.map((name) => expect.stringMatching(new RegExp(`${name}$`))));
  expect(answers.match(/n\d+-/g)).toEqual(names);
  // a piece of 64 KiB holds some 700, of which eight were taken at once
  expect(order.findIndex((path) => path.endsWith('other'))).toBeLessThan(1_500);
  for (const client of [many, other]) client.end();
});

it('has no more than nine requests of one connection at work at once, answered ones that wait included', async () => {
  let begun = 0;
  let most = 0;
  const ended = new Set<number>();
  const waiting: (() => void)[] = [];
  /** How many have gone out, at most: a reply goes when all before it have. */
  const answered = () => {
    let count = 0;
    while (ended.has(count)) count += 1;
    return count;
  };
  const slow: BoundRoute = {
    kind: 'raw',
    operationId: 'test.slow',
    summary: 'Is at work until it is told to end.',
    methods: ['GET'],
    path: '/slow/:name',
    reply: z.unknown(),
    handle: async ({ target }) => {
      begun += 1;
      most = Math.max(most, begun - answered());
      await new Promise<void>((resolve) => waiting.push(resolve));
      ended.add(Number(/n(\d+)-/.exec(target)?.[1]));
      return { status: 200, body: target };
    },
  };
  const core = later(await startHttpCore({}, { routes: [slow] }));
  const COUNT = 300;
  const client = await RawClient.open(core.port);
  const request = (_: unknown, i: number) =>
    `GET /test/slow/n${i}- HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;
  client.write(Array.from({ length: COUNT }, request).join(''));
  await eventually(() => expect(waiting).toHaveLength(9));
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  for (let n = 0; n < COUNT; n++) {
    while (waiting.length === 0) await turn();
    // the latest first: all but the first are answered behind others
    waiting.pop()?.();
    while (ended.size === n) await turn();
  }
  const answers = await client.until(new RegExp(`n${COUNT - 1}-$`));
  expect(answers.match(/n\d+-/g)).toEqual(Array.from({ length: COUNT }, (_, i) => `n${i}-`));
  expect(most).toBe(9);
  client.end();
});

it.each([
  ['http.bodyIdleTimeoutMs', { bodyIdleTimeoutMs: 400 }],
  ['http.requestTimeoutMs', { requestTimeoutMs: 1_000 }],
])(
  'does not count as late (%s) what cannot come while the reply before it is not read',
  async (_, settings) => {
    const LARGE = 16 * 1024 * 1024;
    const core = later(await startHttpCore(settings, { routes: [largeReply(LARGE), working([])] }));
    const client = await RawClient.open(core.port);
    client.socket.pause();
    const head = `Host: a\r\nAuthorization: Bearer ${TOKEN}\r\n`;
    client.write(`GET /test/large HTTP/1.1\r\n${head}\r\n`);
    await eventually(() => expect(core.core.replies.waiting).toBeGreaterThan(0));
    // more than one piece, so that the rest waits in the system
    const body = 'y'.repeat(90_000);
    client.write(
      `POST /test/work HTTP/1.1\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`.repeat(20),
    );
    // Node looks once a second
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    client.socket.resume();
    const answers = await client.untilReplies(21, '{}');
    expect(answers.match(/HTTP\/1.1 \d{3}/g)).toEqual(Array(21).fill('HTTP/1.1 200'));
    client.end();
  },
);
