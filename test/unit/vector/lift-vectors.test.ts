import fc from 'fast-check';
import { parseWithVectors } from '../../../src/services/vector/records/lift-vectors.js';
import { LiftedVector } from '../../../src/services/vector/schemas/lifted-vector.js';

const parse = (text: string) => parseWithVectors(Buffer.from(text));

/** What JSON.parse makes of it, with the vectors of records as float32. */
function expected(text: string): unknown {
  const value = JSON.parse(text) as unknown;
  for (const record of Array.isArray(value) ? (value as unknown[]) : [value]) {
    const holder = record as { vector?: unknown } | null;
    if (typeof holder !== 'object' || holder === null || !Array.isArray(holder.vector)) continue;
    if (holder.vector.every((x) => typeof x === 'number'))
      holder.vector = holder.vector.map((x) => Math.fround(x as number));
  }
  return value;
}

/** A lifted vector shown as the numbers that it holds, in place. */
function shown(value: unknown): unknown {
  for (const record of Array.isArray(value) ? (value as unknown[]) : [value]) {
    const holder = record as { vector?: unknown } | null;
    if (typeof holder === 'object' && holder !== null && holder.vector instanceof LiftedVector)
      holder.vector = [...holder.vector.components];
  }
  return value;
}

const numberText = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => JSON.stringify(x)),
  fc.float({ noNaN: true, noDefaultInfinity: true }).map((x) => JSON.stringify(x)),
  fc
    .tuple(fc.maxSafeInteger(), fc.nat({ max: 99 }), fc.integer({ min: -60, max: 60 }))
    .map(([a, b, e]) => `${a}.${b}e${e}`),
  fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.stringMatching(/^[1-9][0-9]{0,40}$/),
      fc.stringMatching(/^[0-9]{1,40}$/),
    )
    .map(([sign, a, b]) => `${sign}${a}.${b}`),
  fc.stringMatching(/^-?0\.0{0,30}[0-9]{1,25}([eE][+-]?[0-9]{1,3})?$/),
  fc.stringMatching(/^-?[0-9]\.[0-9]{1,22}$/),
  fc.constantFrom(
    '0',
    '-0',
    '0.0',
    '1E5',
    '1e+5',
    '-1e-45',
    '3.4028235677973366e38',
    '1e999',
    '-1e999',
    '1e-999',
    '9007199254740993',
    '0.1',
    '16777217',
    '16777219',
  ),
);

const separator = fc.constantFrom(',', ', ', ' , ', ',\n\t ', ',  ');
/** What follows decides which way a number is read: close to the end of the body there is no room to look ahead. */
const behind = fc.constantFrom('', `,"data":"${'x'.repeat(40)}"`);

test('every number becomes the float32 that JavaScript would round it to', () => {
  fc.assert(
    fc.property(
      fc.array(numberText, { minLength: 1, maxLength: 30 }),
      separator,
      behind,
      (numbers, sep, rest) => {
        const { vector } = parse(`{"vector":[${numbers.join(sep)}]${rest}}`) as { vector: LiftedVector };
        expect(vector).toBeInstanceOf(LiftedVector);
        expect([...vector.components]).toEqual(numbers.map((text) => Math.fround(Number(text))));
      },
    ),
    { numRuns: 500 },
  );
});

test('numbers beside the middle of two float32 are rounded to the right side', () => {
  const rest = `,"data":"${'x'.repeat(40)}"`;
  for (const base of [1, 0.1, 0.0123, 9.75, 1e-4, 1e-5, 12345.678, 1e20]) {
    const low = Math.fround(base);
    const bits = new Uint32Array(new Float32Array([low]).buffer);
    const high = new Float32Array(new Uint32Array([(bits[0] as number) + 1]).buffer)[0] as number;
    const middle = (low + high) / 2;
    for (const factor of [1 - 2 ** -52, 1 - 2 ** -50, 1, 1 + 2 ** -52, 1 + 2 ** -50]) {
      const x = middle * factor;
      const texts = [x.toPrecision(17), x.toPrecision(21), x.toExponential(18)];
      const both = texts.flatMap((text) => [text, `-${text}`]);
      const { vector } = parse(`{"vector":[${both.join(',')}]${rest}}`) as { vector: LiftedVector };
      expect([...vector.components]).toEqual(both.map((text) => Math.fround(Number(text))));
    }
  }
});

const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value));
const record = fc
  .tuple(
    fc.array(numberText, { maxLength: 5 }),
    json,
    json,
    fc.constantFrom('', ' ', '\n\t '),
    fc.constantFrom('a', 'é"\\', 'vector'),
  )
  .map(([numbers, other, nested, blank, text]) => {
    const parts = [
      `"id":${JSON.stringify(text)}`,
      `${blank}"vector"${blank}:${blank}[${numbers.join(`${blank},`)}${blank}]`,
      `"metadata":{"vector":[1,2],"x":${nested}}`,
      `"data":${JSON.stringify(`"vector":[1,2] ${text}`)}`,
      `"other":${other}`,
    ];
    return `{${parts.join(`,${blank}`)}}`;
  });

test('everything around the vectors is what JSON.parse makes of it', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 4 }), fc.boolean(), (records, alone) => {
      const text = alone && records[0] !== undefined ? records[0] : `[${records.join(',')}]`;
      expect(shown(parse(text))).toEqual(expected(text));
    }),
  );
});

test.each([
  '{"vector":[1,null,2]}',
  '{"vector":[1,"2"]}',
  '{"vector":[[1]]}',
  '{"vector":"x"}',
  '{"vector":{"a":1}}',
  '[{"a":{"vector":[1]}}]',
  '[[{"vector":[1]}]]',
  '{"vector":[1],"vector":["x"]}',
  '{"\\u0076ector":[1,2]}',
  '"vector"',
  '5',
  'null',
])('%s is left to JSON.parse', (text) => {
  expect(shown(parse(text))).toEqual(JSON.parse(text));
});

test('of two vectors in a record the last counts; the empty one is empty', () => {
  expect(shown(parse('{"vector":["x"],"vector":[1]}'))).toEqual({ vector: [1] });
  expect(shown(parse('{"vector":[1],"vector":[2]}'))).toEqual({ vector: [2] });
  expect(shown(parse('{"vector":[ ]}'))).toEqual({ vector: [] });
  expect(parse('   ')).toBeUndefined();
});

test('what is no JSON is refused, wherever it is wrong', () => {
  const good = '[{"id":"é","vector":[1,-2.5e3,-0.25],"x":[true]},{"vector":[0.123456789,0.1]}]'.padEnd(100);
  fc.assert(
    fc.property(
      fc.nat({ max: good.length }),
      fc.constantFrom('', ',', ']', '}', '"', '[', '0', '+', '.', 'e', ' ', '\\', '-'),
      fc.boolean(),
      (at, insert, cut) => {
        const text = `${good.slice(0, at)}${insert}${good.slice(cut ? at + 1 : at)}`;
        let wanted: unknown;
        try {
          wanted = expected(text);
        } catch {
          expect(() => parse(text)).toThrow(/not valid JSON/);
          return;
        }
        expect(shown(parse(text))).toEqual(wanted);
      },
    ),
    { numRuns: 2_000 },
  );
  for (const text of [
    '{"vector":[01]}',
    '{"vector":[1.]}',
    '{"vector":[.5]}',
    '{"vector":[+1]}',
    '{"vector":[1,]}',
    '{"vector":[,1]}',
    '{"vector":[1 2]}',
    '{"vector":[-]}',
    '{"vector":[1e]}',
    '{"vector":[NaN]}',
    '{"vector":[1',
  ])
    expect(() => parse(text)).toThrow(/not valid JSON/);
  expect(() => parseWithVectors(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]))).toThrow(/UTF-8/);
});
