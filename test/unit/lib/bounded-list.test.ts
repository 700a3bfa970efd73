import { z } from 'zod';
import { boundedList, checkInSlices } from '../../../src/lib/bounded-list.js';

let looked = 0;
const element = z.unknown().transform((value, context) => {
  looked++;
  if (typeof value === 'number') return value * 2;
  context.addIssue({ code: 'custom', message: 'expected a number', path: ['inner'] });
  return z.NEVER;
});
const list = boundedList(element, { min: 1, max: 1_000, orOne: true, of: 'numbers' });

beforeEach(() => {
  looked = 0;
});

/** By either way: all at once, and in slices. */
async function check(value: unknown) {
  const result = list.safeParse(value);
  const sliced = await checkInSlices(list, value);
  if (result.success) expect(sliced).toEqual({ elements: result.data });
  else {
    const { path, message } = result.error.issues[0] as z.core.$ZodIssue;
    expect(result.error.issues).toHaveLength(1);
    expect(sliced).toEqual({ issue: { path, message } });
    return `${path.join('.')}: ${message}`;
  }
  return result.data;
}

test('gives its elements, of which one may stand alone', async () => {
  expect(await check([1, 2])).toEqual([2, 4]);
  expect(await check(3)).toEqual([6]);
});

test('counts before it looks', async () => {
  expect(await check(Array(1_001).fill('x'))).toBe(': expected at most 1000 numbers, got 1001');
  expect(await check([])).toBe(': expected at least 1 numbers');
  expect(looked).toBe(0);
});

test('ends with the first that is wrong', async () => {
  expect(await check([1, 'x', 'y', ...Array(900).fill('z')])).toBe('1.inner: expected a number');
  expect(looked).toBe(2 * 2);
});

test('is documented as what it takes', () => {
  const plain = boundedList(z.string(), { max: 5, of: 'words' }).describe('Words.');
  expect(z.toJSONSchema(plain, { io: 'input' })).toMatchObject({
    type: 'array',
    maxItems: 5,
    items: { type: 'string' },
    description: 'Words.',
  });
});

test('is no part of another schema', () => {
  expect(checkInSlices(z.array(z.string()), [])).toBeUndefined();
});
