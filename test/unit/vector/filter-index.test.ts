import { isIndexed } from '../../../src/services/vector/filter/filter-jsonpath.js';
import { parseFilter } from '../../../src/services/vector/filter/parse-filter.js';

test.each([
  ["a = 'x'", true],
  ["a != 'x'", false],
  ['a IN (1, 2)', true],
  ['a NOT IN (1, 2)', false],
  ['a CONTAINS 1', true],
  ['a NOT CONTAINS 1', false],
  ['a < 1', false],
  ["a GLOB 'x*'", false],
  ['HAS FIELD a', false],
  ['a = 1 AND b < 2', true],
  ['a = 1 OR b < 2', false],
  ['a = 1 OR b = 2', true],
])('%s: the GIN index finds its matches: %s', (text, expected) => {
  expect(isIndexed(parseFilter(text))).toBe(expected);
});
