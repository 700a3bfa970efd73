import { Receiver } from '@upstash/qstash';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { signer } from '../../../src/services/queue/delivery/signature.js';

const KEY = 'sig_some_key_with/odd+characters=';
const receiver = new Receiver({ currentSigningKey: KEY, nextSigningKey: 'sig_next' });

it.each(['', '{"a":"ä"}'])(
  'is what the public Receiver verifies, over exactly this body: %p',
  async (body) => {
    const signature = signer(() => KEY, Date.now)('https://example.com', Buffer.from(body));
    await expect(receiver.verify({ signature, body, url: 'https://example.com' })).resolves.toBe(true);
    await expect(
      receiver.verify({ signature, body: `${body} `, url: 'https://example.com' }),
    ).rejects.toThrow();
    await expect(receiver.verify({ signature, body, url: 'https://example.com/' })).rejects.toThrow();
  },
);

it('verifies with the next key after a rotation and not with a foreign one', async () => {
  const signature = signer(() => 'sig_next', Date.now)('https://example.com', Buffer.from('x'));
  await expect(receiver.verify({ signature, body: 'x' })).resolves.toBe(true);
  const foreign = signer(() => 'sig_other', Date.now)('https://example.com', Buffer.from('x'));
  await expect(receiver.verify({ signature: foreign, body: 'x' })).rejects.toThrow();
});

it('is good for five minutes and carries an id of its own each time', async () => {
  const sign = signer(
    () => KEY,
    () => 1_700_000_000_900,
  );
  const [first, second] = [sign('https://e.com', Buffer.alloc(0)), sign('https://e.com', Buffer.alloc(0))];
  expect(decodeProtectedHeader(first)).toEqual({ alg: 'HS256', typ: 'JWT' });
  const claims = decodeJwt(first);
  expect(claims).toMatchObject({
    iss: 'Upstash',
    sub: 'https://e.com',
    iat: 1_700_000_000,
    exp: 1_700_000_300,
    nbf: 0,
  });
  expect(claims.jti).toMatch(/^jwt_[0-9a-f]{32}$/);
  expect(decodeJwt(second).jti).not.toBe(claims.jti);
});
