import fc from 'fast-check';
import { commandOfPath } from '../../../src/services/kv/api/path-arguments.js';

const NONE = Buffer.alloc(0);
const path = (target: string, body: Buffer = NONE) => commandOfPath(target, body);

test.each([
  ['/get/foo', ['get', 'foo']],
  ['/', []],
  ['?EX=1', ['EX', '1']],
  ['/set/foo/', ['set', 'foo', '']],
  ['/set//v', ['set', '', 'v']],
  ['/set/a%2Fb/c%20d', ['set', 'a/b', 'c d']],
  ['/set/a+b/c', ['set', 'a+b', 'c']],
  ['/set/k/v?EX=100&NX', ['set', 'k', 'v', 'EX', '100', 'NX']],
  ['/set/k/v?_token=secret&EX=1&_token=other', ['set', 'k', 'v', 'EX', '1']],
  ['/set/k/v?%5Ftoken=secret', ['set', 'k', 'v']],
  ['/set/k/v?a=b=c&&d=', ['set', 'k', 'v', 'a', 'b=c', 'd', '']],
  ['/zadd/k?1=a&1=b', ['zadd', 'k', '1', 'a', '1', 'b']],
  ['/get/%C3%A4', ['get', Buffer.from('ä')]],
  ['/get/%FF%00', ['get', Buffer.from([255, 0])]],
])('%s', (target, expected) => {
  expect(path(target)).toEqual(expected);
});

test('the body comes after the path and before the query', () => {
  const body = Buffer.from([0, 255, 1]);
  expect(path('/set/k?EX=100', body)).toEqual(['set', 'k', body, 'EX', '100']);
});

test.each(['/get/%', '/get/%4', '/get/%zz', '/get/a?b=%G0', '/get/%-1'])('%s is refused', (target) => {
  expect(() => path(target)).toThrow('two hex digits');
});

test('any bytes survive percent-encoding', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 12 }), { minLength: 1, maxLength: 5 }), (parts) => {
      const escaped = (bytes: Uint8Array) =>
        [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
      const command = path(`/${parts.map(escaped).join('/')}`);
      // the path "/" alone has no segment
      const expected =
        parts.length === 1 && parts[0]?.length === 0 ? [] : parts.map((part) => Buffer.from(part));
      expect(command.map((argument) => Buffer.from(argument as string))).toEqual(expected);
    }),
  );
});
