import { z } from 'zod';
import type { RawRoute } from '../../../src/http/route.js';
import { httpSettings } from '../../../src/http/settings.js';
import { startHttpCore, TOKEN } from '../../support/http-instance.js';

const whoami: RawRoute<undefined> = {
  kind: 'raw',
  operationId: 'test.whoami',
  summary: 'Answers who asks.',
  methods: ['GET'],
  path: '/whoami',
  reply: z.unknown(),
  handle: async (_, { clientAddress }) => ({ status: 200, body: JSON.stringify(clientAddress) }),
};

/** Who a request with this header comes from, for a gateway that trusts these. */
async function clientOf(trustedProxies: string[], forwarded: string | undefined): Promise<string> {
  const core = await startHttpCore({ trustedProxies }, { routes: [whoami] });
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    ...(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }),
  };
  const reply = await fetch(`${core.url}/test/whoami`, { headers });
  const client = (await reply.json()) as string;
  await core.stop();
  return client;
}

it.each([
  ['nobody: the header tells nothing', [], '203.0.113.9', '127.0.0.1'],
  ['nobody, and no header', [], undefined, '127.0.0.1'],
  ['the peer', ['loopback'], '203.0.113.9', '203.0.113.9'],
  ['the peer, which wrote nothing', ['loopback'], undefined, '127.0.0.1'],
  ['another than the peer', ['10.0.0.0/8'], '203.0.113.9', '127.0.0.1'],
  [
    'the peer alone: what the client wrote itself is not believed',
    ['127.0.0.1'],
    '1.1.1.1, 203.0.113.9',
    '203.0.113.9',
  ],
  ['two in a row', ['127.0.0.0/8', '10.0.0.0/8'], '1.1.1.1, 203.0.113.9, 10.1.2.3', '203.0.113.9'],
  ['one that writes ports', ['loopback'], '203.0.113.9:5678', '203.0.113.9'],
  ['one that writes IPv6 in brackets', ['loopback'], '[2001:db8::1]:443', '2001:db8::1'],
  ['one that writes IPv4 in IPv6', ['loopback'], '::ffff:203.0.113.9', '203.0.113.9'],
  ['one that writes no address', ['loopback'], 'unknown', '127.0.0.1'],
])('trusted: %s', async (_what, trusted, forwarded, client) => {
  expect(await clientOf(trusted, forwarded)).toBe(client);
});

it.each(['10.0.0.0/33', 'proxy.internal', '10.0', ''])('%j is no proxy', (text) => {
  expect(() => httpSettings.parse({ trustedProxies: [text] })).toThrow(/expected an address/);
});
