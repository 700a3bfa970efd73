import fc from 'fast-check';
import { HttpError } from '../../../src/http/errors.js';
import { packedSize, packMany, packOne } from '../../../src/services/vector/records/components.js';

const rules = (dimension: number, needsLength = false) => ({ dimension, needsLength });

function unpack(packed: Buffer): number[] {
  const dimension = packed.readUInt16BE(0);
  expect(packed.readUInt16BE(2)).toBe(0);
  expect(packed.length).toBe(packedSize(dimension));
  return Array.from({ length: dimension }, (_, i) => packed.readFloatBE(4 + 4 * i));
}

function refusal(work: () => unknown): [number, string] {
  try {
    work();
  } catch (error) {
    if (error instanceof HttpError) return [error.status, error.message];
    throw error;
  }
  throw new Error('nothing was refused');
}

const component = fc.double({ min: -1e18, max: 1e18, noNaN: true });

test('packs every component as the float32 nearest to it', () => {
  fc.assert(
    fc.property(fc.array(component, { minLength: 1, maxLength: 50 }), (components) => {
      expect(unpack(packOne(components, rules(components.length), 'v'))).toEqual(components.map(Math.fround));
    }),
  );
});

test('packs vectors as a binary array of the given element type', () => {
  const vectors = [
    [3, 4],
    [7, 8],
  ];
  const packed = packMany(vectors, rules(2), 16_405, String);
  expect([0, 4, 8, 12, 16].map((at) => packed.readUInt32BE(at))).toEqual([1, 0, 16_405, 2, 1]);
  expect(packed.length).toBe(20 + 2 * (4 + packedSize(2)));
  expect(packed.readInt32BE(20)).toBe(12);
  expect(unpack(packed.subarray(24, 36))).toEqual([3, 4]);
  expect(unpack(packed.subarray(40))).toEqual([7, 8]);
});

test.each([
  ['too few', [1, 2], 422, 'Invalid vector dimension: 2, expected: 3'],
  ['too many', [1, 2, 3, 4], 422, 'Invalid vector dimension: 4, expected: 3'],
  ['none', [], 422, 'Invalid vector dimension: 0, expected: 3'],
  ['null', [1, null, 3], 400, 'v.1: expected a number, got null'],
  ['a string', [1, 2, '3'], 400, 'v.2: expected a number, got string'],
  ['a nested array', [[1], 2, 3], 400, 'v.0: expected a number, got an array'],
  [
    'infinity',
    [1, 2, Number.POSITIVE_INFINITY],
    422,
    /^v\.2: expected a number of at most 3\.4028234663852886e\+38/,
  ],
  ['NaN', [1, Number.NaN, 3], 422, /^v\.1: expected a number of at most 3\.4028234663852886e\+38/],
  ['beyond float32', [1, 3.5e38, 3], 422, /^v\.1: expected a number of at most 3\.4028234663852886e\+38/],
  ['a length beyond float32', [3e19, 0, 0], 422, /^v: the vector is too long/],
])('refuses %s', (_name, components, status, message) => {
  const [refused, text] = refusal(() => packOne(components, rules(3), 'v'));
  expect(refused).toBe(status);
  if (typeof message === 'string') expect(text).toBe(message);
  else expect(text).toMatch(message);
});

test.each([[[0, 0]], [[-0, 0]], [[1e-30, 1e-30]]])(
  'refuses %j only where a direction is needed',
  (components) => {
    expect(refusal(() => packOne(components, rules(2, true), 'v'))[0]).toBe(422);
    expect(unpack(packOne(components, rules(2), 'v'))).toEqual(components.map(Math.fround));
  },
);
