import fc from 'fast-check';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { metadata, naiveFilter } from '../../support/naive-filter.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller } from '../../support/vector.js';

const SCHEMA = 'test_vector_filter';

let gateway: RunningGateway;
let index: ReturnType<typeof vectorCaller>;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await startGateway({
    vector: { database: { schema: SCHEMA }, indexes: [{ dimension: 2, token: TOKENS.vector }] },
  });
  index = vectorCaller(`${gateway.url}/vector`);
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

const vector = [1, 0];
const idsOf = (result: unknown) => (result as { id: string }[]).map(({ id }) => id);

test('filters choose the records that a naive program chooses', async () => {
  const documents = fc.sample(metadata, { numRuns: 300, seed: 11 });
  const records = [
    ...documents.map((document, i) => ({ id: `${i}`, vector, metadata: document })),
    { id: 'none', vector },
  ];
  expect((await index('/upsert', records)).status).toBe(200);
  await fc.assert(
    fc.asyncProperty(fc.array(naiveFilter, { minLength: 40, maxLength: 40 }), async (filters) => {
      const queries = filters.map(({ text }) => ({ vector, topK: 1_000, filter: text }));
      const { status, result, text: reply } = await index('/query', queries);
      expect({ status, reply: status === 200 ? '' : reply }).toEqual({ status: 200, reply: '' });
      filters.forEach(({ text, matches }, i) => {
        const expected = records.filter((record) =>
          matches((record as { metadata?: unknown }).metadata ?? {}),
        );
        const found = idsOf((result as unknown[])[i]);
        expect({ text, found }).toEqual({ text, found: expected.map(({ id }) => id) });
      });
    }),
    { numRuns: 25, endOnFailure: true },
  );
});

test.each<[string, RegExp]>([
  ['a', /column 2: expected =, !=, </],
  ['a =', /column 4: expected a quoted text, a number, true or false/],
  ['a = null', /column 5: expected a quoted text/],
  ['a = b', /column 5: expected a quoted text/],
  ["a = 'x", /column 7: expected the closing ' of the text at column 5/],
  ["name > 'a'", /column 8: expected a number/],
  ['a IN ()', /column 7: expected a quoted text/],
  ['a IN (1, 2', /column 11: expected "," or "\)"/],
  ['(a = 1', /column 7: expected AND, OR or "\)"/],
  ['a = 1)', /column 6: expected AND, OR or the end/],
  ['a = 1 b = 2', /column 7: expected AND, OR or the end/],
  ['a = 1 AND', /column 10: expected a field or "\("/],
  ['NOT a = 1', /column 5: expected =/],
  ['a NOT = 1', /column 7: expected GLOB, IN or CONTAINS/],
  ['a[] = 1', /column 2: expected a place such as \[0\]/],
  ['a[ = 1', /column 2: expected a place/],
  ['a. = 1', /column 3: expected a key/],
  ['a..b = 1', /column 3: expected a key/],
  ['.a = 1', /column 1: expected a field/],
  ['a[0]b = 1', /column 5: expected "\."/],
  ['HAS FIELD', /column 10: expected a field/],
  ['a = 1e999', /column 5: expected a number that float64 can hold/],
  ['a = 1x', /column 6: expected the end of the number/],
  ['a == 1', /column 4: expected a quoted text/],
  ['a ! 1', /column 3: expected a field, an operator/],
  ["a GLOB '[z-a]'", /column 8: expected a pattern whose range z-a runs upwards/],
  [`a GLOB '${'*?'.repeat(600)}'`, /column 8: expected a pattern with at most 1000 wildcards/],
  [`a = 1 AND a${'[0]'.repeat(1_000)} = 1`, /column 11: expected a field of at most 1000 steps/],
  ["a GLOB '[ab'", /column 8: expected a "\]"/],
  ["a = 'x\0'", /column 5: expected text without U\+0000/],
  [`${'('.repeat(65)}a = 1${')'.repeat(65)}`, /column 65: expected at most 64 parentheses/],
  [`a IN (${new Array(1_001).fill(1).join(',')})`, /expected at most 1000 conditions and values/],
  [new Array(1_001).fill('a = 1').join(' OR '), /expected at most 1000 conditions/],
  [`a = '${'x'.repeat(70_000)}'`, /column 65537: expected the end/],
])('%.40s is refused with the place and what was expected', async (filter, message) => {
  const { status, error } = await index('/query', { vector, filter });
  expect([status, error]).toEqual([400, expect.stringMatching(message)]);
  expect((await index('/delete', { filter })).status).toBe(400);
});

test('a filter that is no text is refused; an empty one and null mean none', async () => {
  for (const filter of [5, {}, [], true])
    expect((await index('/query', { vector, filter })).status).toBe(400);
  await index('/upsert/some', { id: 'x', vector });
  for (const filter of ['', '  ', null])
    expect(idsOf((await index('/query/some', { vector, filter })).result)).toEqual(['x']);
});

test('large filters are answered, and SQL or jsonpath in them is only text', async () => {
  await index('/upsert/odd', [
    { id: 'x', vector, metadata: { a: "'; drop schema x; --", n: 999, deep: { $: 1 } } },
    { id: 'y', vector, metadata: { a: '") || (1 == 1', n: 0 } },
  ]);
  const ids = async (filter: string) => idsOf((await index('/query/odd', { vector, filter })).result);
  expect(await ids("a = '''; drop schema x; --'")).toEqual(['x']);
  expect(await ids(`a = '") || (1 == 1'`)).toEqual(['y']);
  expect(await ids(`a = '" == "" || $.n == 999'`)).toEqual([]);
  expect(await ids(`n IN (${Array.from({ length: 999 }, (_, i) => i + 1).join(',')})`)).toEqual(['x']);
  expect(await ids(Array.from({ length: 1_000 }, (_, i) => `n = ${i}`).join(' OR '))).toEqual(['x', 'y']);
  expect(await ids(`${'('.repeat(64)}n = 0${')'.repeat(64)}`)).toEqual(['y']);
  expect(await ids("a GLOB '*'")).toEqual(['x', 'y']);
  expect(await ids(`a GLOB '${'*a'.repeat(200)}*'`)).toEqual([]);
  expect(await ids('tags#-1] = 1 OR n[99999] = 1 OR n[#-99999] = 1')).toEqual([]);
});
