import fc from 'fast-check';
import {
  canonicalHeaderName,
  decodeTickets,
  encodeTickets,
  MAX_TICKETS,
  newDeadLetterId,
  newMessageId,
} from '../../../src/services/queue/message/message.js';

it('carries tickets through their encoding', () => {
  const ticket = fc.record({ id: fc.nat().map(newMessageId), attempt: fc.nat() });
  fc.assert(
    fc.property(fc.array(ticket, { minLength: 1, maxLength: MAX_TICKETS }), (tickets) => {
      expect(decodeTickets(encodeTickets(tickets))).toEqual(tickets);
    }),
  );
});

it.each([
  '',
  'x',
  'null',
  '{}',
  '[]',
  '[1,0]',
  '["a"]',
  '["a","0"]',
  '["a",0.5]',
  '["a",-1]',
  '["a",2147483648]',
  '["",0]',
  '["a\\u0000",0]',
  '["\\ud800",0]',
  '["a",0,"b"]',
  '["a",0,"b",-1]',
  JSON.stringify(Array.from({ length: MAX_TICKETS + 1 }, () => ['a', 0]).flat()),
])('takes %p for no tickets', (text) => {
  expect(decodeTickets(Buffer.from(text))).toBeUndefined();
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
