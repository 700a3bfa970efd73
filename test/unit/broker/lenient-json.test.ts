import fc from 'fast-check';
import { parseLeniently } from '../../../src/services/broker/api/lenient-json.js';

const parse = (text: string) => parseLeniently(Buffer.from(text));

test.each([
  ['{"topic":"t","partition":0,}', { topic: 't', partition: 0 }],
  ['[{"value":"a",},\n]', [{ value: 'a' }]],
  ['{"a":[1,2 , ] , }', { a: [1, 2] }],
  ['{"a":"x,]","b":"\\",}",}', { a: 'x,]', b: '",}' }],
])('%s', (text, value) => {
  expect(parse(text)).toEqual(value);
});

test.each(['[,]', '{,}', '[1,,]', '{"a":,}', '[1,', '{"a" 1,}', ',', '["\\'])('%s is no JSON', (text) => {
  expect(() => parse(text)).toThrow(/not valid JSON/);
});

test('nothing is no value', () => {
  expect(parse('')).toBeUndefined();
  expect(parse(' \n')).toBeUndefined();
});

test('commas behind last elements change nothing of what a body says', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value, undefined, 1).replaceAll(/([^[{,:\s])(\n\s*[\]}])/g, '$1,$2');
      expect(parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});
