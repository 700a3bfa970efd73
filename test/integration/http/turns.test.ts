import { z } from 'zod';
import type { BoundRoute } from '../../../src/http/route.js';
import { startHttpCore, TOKEN } from '../../support/http-instance.js';
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
      const replies = (await client.until(new RegExp(`(\\{\\}[^]*){${count}}$`))).match(/HTTP\/1.1 200 /g);
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
