import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import type { AuthScheme } from '../../../../src/http/route.js';
import { authenticator } from '../../../../src/http/routing/auth.js';

const request = (authorization: string | undefined, url = '/') =>
  ({ headers: authorization === undefined ? {} : { authorization }, url }) as IncomingMessage;

const who = (name: string) => ({ name, access: 'full' }) as const;
const bearer: AuthScheme = {
  kind: 'bearer',
  credentials: [
    { token: 'first-token', principal: who('first') },
    { token: 'second-token', principal: who('second') },
  ],
  queryKey: '_token',
};
const basic: AuthScheme = {
  kind: 'basic',
  credentials: [{ username: 'user', password: 'pass:word', principal: who('user') }],
  queryKeys: { username: 'user', password: 'pass', paths: ['/webhook'] },
};

describe('bearer', () => {
  const authenticate = authenticator(bearer);
  it.each([
    ['Bearer first-token', '/', 'first'],
    ['bearer   second-token ', '/', 'second'],
    ['Bearer wrong', '/?_token=first-token', 'first'],
    [undefined, '/get/x?a=1&_token=second-token', 'second'],
    ['Bearer first-token', '/?_token=wrong', undefined],
    ['first-token', '/', undefined],
    ['Bearer', '/', undefined],
    ['Bearer first-token second-token', '/', undefined],
    [undefined, '/', undefined],
  ])('finds whom %s at %s belongs to', (header, url, name) => {
    expect(authenticate(request(header, url))?.name).toBe(name);
  });

  it('takes the bare token where that is allowed', () => {
    expect(authenticator({ ...bearer, bareToken: true })(request('first-token'))?.name).toBe('first');
  });

  it('knows nobody without credentials, and no other token', () => {
    expect(authenticator({ kind: 'bearer', credentials: [] })(request('Bearer '))).toBeUndefined();
    fc.assert(
      fc.property(fc.string(), (token) => {
        fc.pre(!['first-token', 'second-token'].includes(token.trim()));
        expect(authenticate(request(`Bearer ${token}`))).toBeUndefined();
      }),
    );
  });
});

describe('basic', () => {
  const authenticate = authenticator(basic);
  const encoded = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  it.each([
    [encoded('user:pass:word'), '/', 'user'],
    [encoded('user:pass'), '/', undefined],
    [encoded('userpass:word'), '/', undefined],
    [encoded('user'), '/', undefined],
    ['Basic !!!', '/', undefined],
    ['Bearer user', '/', undefined],
    [undefined, '/webhook?topic=t&user=user&pass=pass%3Aword', 'user'],
    [undefined, '/webhook/?user=user&pass=pass%3Aword', 'user'],
    [undefined, '/topics?user=user&pass=pass%3Aword', undefined],
    [undefined, '/webhook?user=user', undefined],
  ])('finds whom %s at %s belongs to', (header, url, name) => {
    expect(authenticate(request(header, url))?.name).toBe(name);
  });
});
