import { startHttpCore, TOKEN } from '../../support/http-instance.js';

const headers = { authorization: `Bearer ${TOKEN}` };

test('an address that sends more than it may is refused before its credentials are looked at', async () => {
  const { url, seen, stop } = await startHttpCore({ addressLimit: { requests: 3, seconds: 600 } });
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await fetch(`${url}/test/echo/x`, { headers })).status);
  expect(statuses).toEqual([200, 200, 200]);
  for (const given of [headers, {}]) {
    const over = await fetch(`${url}/test/echo/x`, { headers: given });
    expect(over.status).toBe(429);
    expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(1);
    expect(over.headers.get('ratelimit-limit')).toBe('3');
    expect(over.headers.get('ratelimit-remaining')).toBe('0');
    expect(await over.json()).toMatchObject({ status: 429, code: 'too_many_requests' });
  }
  expect(seen.bodies).toBe(3);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  await stop();
});

test('behind a proxy the address is what the proxy itself has seen', async () => {
  const { url, stop } = await startHttpCore({
    addressLimit: { requests: 1, seconds: 600 },
    trustedProxies: ['loopback'],
  });
  const from = async (address: string) =>
    (await fetch(`${url}/test/echo/x`, { headers: { ...headers, 'x-forwarded-for': address } })).status;
  expect(await from('203.0.113.1')).toBe(200);
  expect(await from('made up, 203.0.113.1')).toBe(429);
  expect(await from('203.0.113.2')).toBe(200);
  // one client has 2^64 addresses
  expect(await from('2001:db8::1')).toBe(200);
  expect(await from('2001:db8::2')).toBe(429);
  expect(await from('2001:db8:0:1::1')).toBe(200);
  await stop();
});
