import { z } from 'zod';
import type { BoundRoute } from '../../../src/http/route.js';
import { eventually } from '../../support/eventually.js';
import { startHttpCore } from '../../support/http-instance.js';
import { RawClient } from '../../support/raw-client.js';
import { stopAfterEach } from '../../support/stop-after-each.js';

const later = stopAfterEach();
const MIB = 1024 * 1024;

/** Answers how many bytes came, of anybody. */
const open: BoundRoute = {
  kind: 'raw',
  operationId: 'test.open',
  summary: 'Needs no token.',
  methods: ['GET', 'POST'],
  isOpen: true,
  path: '/open',
  reply: z.unknown(),
  handle: async ({ body }) => ({ status: 200, body: String(body.length) }),
};

it('holds a bounded number of bytes of those who show no token', async () => {
  const core = later(
    await startHttpCore({ bodyIdleTimeoutMs: 60_000 }, { routes: [open], bodyLimit: 2 * MIB }),
  );
  const url = `${core.url}/test/open`;
  const send = (size: number) => fetch(url, { method: 'POST', body: 'x'.repeat(size) });
  // 32 MiB that are announced and do not come; half of them do not say how many they are
  const head = 'POST /test/open HTTP/1.1\r\nHost: a\r\n';
  const slow = await Promise.all(Array.from({ length: 24 }, () => RawClient.open(core.port)));
  later({ stop: async () => slow.forEach((client) => void client.end()) });
  for (const [i, client] of slow.entries())
    client.write(`${head}${i < 16 ? `Content-Length: ${MIB}` : 'Transfer-Encoding: chunked'}\r\n\r\n`);
  const refused = await eventually(async () => {
    const reply = await send(1_000);
    expect(reply.status).toBe(429);
    return reply;
  });
  expect(refused.headers.get('retry-after')).toBe('1');
  expect((await fetch(url)).status).toBe(200);
  // one is answered, one goes
  slow[0]?.write('x'.repeat(MIB));
  expect(await slow[0]?.until(/\r\n\r\n1048576$/)).toMatch(/^HTTP\/1.1 200 /);
  expect((await send(1_000)).status).toBe(200);
  slow[20]?.end();
  await eventually(async () => expect((await send(2 * MIB)).status).toBe(200));
});
