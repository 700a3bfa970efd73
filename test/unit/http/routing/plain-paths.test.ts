import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import fc from 'fast-check';
import { plainPaths } from '../../../../src/http/routing/plain-paths.js';

const word = fc.constantFrom(
  'a',
  'b',
  'A',
  'a.b',
  'x-y',
  '~',
  '..',
  '.',
  'consume',
  'ä',
  '%61',
  'a%2Fb',
  '',
  'a:b',
  '*',
);
const pattern = fc
  .array(fc.constantFrom('a', 'b', 'consume', 'a.b', ':one', ':two', ':three'), {
    minLength: 1,
    maxLength: 4,
  })
  .filter((segments) => new Set(segments).size === segments.length)
  .map((segments) => `/${segments.join('/')}`);
const path = fc.array(word, { minLength: 1, maxLength: 5 }).map((words) => `/${words.join('/')}`);

/** What Express' router does with a path: the first place that fits, with its parameters. */
function byExpress(patterns: readonly string[], url: string) {
  const router = express.Router({ caseSensitive: true });
  let found: { path: string; params: object } | undefined;
  for (const one of patterns)
    router.all(one, (request) => {
      found = { path: one, params: { ...request.params } };
    });
  router({ url, method: 'GET' } as IncomingMessage as never, {} as ServerResponse as never, () => {});
  return found;
}

test('what is found is what Express finds; what is not found is left to Express', () => {
  fc.assert(
    fc.property(fc.uniqueArray(pattern, { maxLength: 6 }), path, (patterns, url) => {
      const found = plainPaths(patterns.map((one) => ({ path: one })))(url);
      if (found === undefined) return;
      expect({ path: found.place.path, params: found.params }).toEqual(byExpress(patterns, url));
    }),
    { numRuns: 2_000 },
  );
});

test('plain paths are found', () => {
  const find = plainPaths(['/a/b', '/a/:x', '/:x/:y/c'].map((one) => ({ path: one })));
  expect(find('/a/b')).toEqual({ place: { path: '/a/b' }, params: {} });
  expect(find('/a/c.d-e~_1')).toEqual({ place: { path: '/a/:x' }, params: { x: 'c.d-e~_1' } });
  expect(find('/1/2/c')).toEqual({ place: { path: '/:x/:y/c' }, params: { x: '1', y: '2' } });
});

test.each(['/a/b/', '/a//b', '/a/%62', '/a/b?c', '', '/', 'a/b', '/a/ü', '/a/b/d'])(
  '%p is left to Express',
  (url) => {
    expect(plainPaths([{ path: '/a/b' }, { path: '/a/:x' }])(url)).toBeUndefined();
  },
);

test('nothing is found behind a pattern of another kind, which may come first', () => {
  const find = plainPaths(['/a', '/a{/:x}', '/a/:y'].map((one) => ({ path: one })));
  expect(find('/a')?.place.path).toBe('/a');
  expect(find('/a/1')).toBeUndefined();
});
