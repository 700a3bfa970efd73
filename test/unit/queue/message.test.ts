import fc from 'fast-check';
import {
  canonicalHeaderName,
  decodeToken,
  encodeToken,
  newDeadLetterId,
  newMessageId,
} from '../../../src/services/queue/message.js';

it('carries a token through its encoding', () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(), (time, attempt) => {
      const id = newMessageId(time);
      expect(decodeToken(encodeToken({ id, attempt }))).toEqual({ id, attempt });
    }),
  );
});

it.each([
  '',
  'x',
  'null',
  '[]',
  '{}',
  '{"id":1,"attempt":0}',
  '{"id":"a"}',
  '{"id":"a","attempt":"0"}',
  '{"id":"a","attempt":0.5}',
  '{"id":"a","attempt":-1}',
  '{"id":"a","attempt":2147483648}',
  '{"id":"","attempt":0}',
  '{"id":"a\\u0000","attempt":0}',
  '{"id":"\\ud800","attempt":0}',
])('takes %p for no token', (text) => {
  expect(decodeToken(Buffer.from(text))).toBeUndefined();
});

it('makes ids that are URL-safe, distinct and grow with time', () => {
  const ids = Array.from({ length: 1_000 }, (_, i) => newMessageId(1_700_000_000_000 + i));
  expect(new Set(ids).size).toBe(1_000);
  expect([...ids].sort()).toEqual(ids);
  for (const id of ids) expect(id).toMatch(/^msg_[0-9a-z]{33}$/);
  expect(newDeadLetterId(1_700_000_000_000)).toMatch(/^1700000000000-\d+$/);
});

it('writes header names as people do', () => {
  expect(['content-type', 'X-MY-header', 'etag', 'x-1-a'].map(canonicalHeaderName)).toEqual([
    'Content-Type',
    'X-My-Header',
    'Etag',
    'X-1-A',
  ]);
});
