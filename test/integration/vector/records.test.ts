import fc from 'fast-check';
import { mergePatch } from '../../../src/services/vector/records/merge-patch.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_records';
const READ_ONLY = TOKENS.vectorReadOnly;

let gateway: RunningGateway;
let index: ReturnType<typeof vectorCaller>;
let emptied: ReturnType<typeof vectorCaller>;
let sparse: ReturnType<typeof vectorCaller>;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  const common = { dimension: 2, token: TOKENS.vector, readOnlyToken: READ_ONLY, maxPage: 100 };
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [
        { ...common, name: 'main', path: '/main' },
        { ...common, name: 'emptied', path: '/emptied' },
        { ...common, name: 'sparse', path: '/sparse', type: 'SPARSE' },
      ],
    },
  });
  index = vectorCaller(`${gateway.url}/main`);
  emptied = vectorCaller(`${gateway.url}/emptied`);
  sparse = vectorCaller(`${gateway.url}/sparse`);
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

const vector = [1, 0];
const records = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => ({ id: `r${i + from}`, vector: [1, i + from] }));

interface Page {
  nextCursor: string;
  vectors: { id: string }[];
}

const page = async (path: string, body: object) => (await index(path, body)).result as Page;
const idsOf = (list: unknown) => (list as ({ id: string } | null)[]).map((entry) => entry?.id ?? null);
const all = { includeMetadata: true, includeVectors: true, includeData: true };

describe('fetch', () => {
  test('gives what is asked for in its order, null where there is none, repeated where it is repeated', async () => {
    await index('/upsert/fetch', [
      { id: 'a', vector: [0.1, 2], metadata: { x: 1 }, data: 'text' },
      { id: 7, vector: [3, 4] },
    ]);
    const full = { id: 'a', vector: [0.1, 2], metadata: { x: 1 }, data: 'text' };
    expect((await index('/fetch/fetch', { ids: [7, 'nobody', 'a', 7], ...all })).result).toEqual([
      { id: '7', vector: [3, 4] },
      null,
      full,
      { id: '7', vector: [3, 4] },
    ]);
    expect((await index('/fetch/fetch', { ids: ['a'] })).result).toEqual([{ id: 'a' }]);
    expect((await index('/fetch/fetch', ['a'])).result).toEqual([{ id: 'a' }]);
    expect((await index('/fetch/fetch', { ids: [] })).result).toEqual([]);
    expect((await index('/fetch/nowhere', { ids: ['a', 'b'] })).result).toEqual([null, null]);
    expect((await index('/fetch/fetch', { ids: ['a'] }, { method: 'PUT' })).result).toEqual([{ id: 'a' }]);
  });

  test('by prefix: exact bytes, any character, in insertion order, at most a page', async () => {
    const names = [
      'x%',
      'x_1',
      'x',
      'xy',
      'X',
      'x\u{10ffff}',
      'x\u{10ffff}z',
      'x\u{d7ff}',
      'x\u{e000}',
      'w',
      'y',
      'é1',
      'é2',
    ];
    await index(
      '/upsert/prefix',
      names.map((id) => ({ id, vector })),
    );
    const ids = async (prefix: string) => idsOf((await index('/fetch/prefix', { prefix })).result);
    expect(await ids('x')).toEqual(names.filter((name) => name.startsWith('x')));
    expect(await ids('x_')).toEqual(['x_1']);
    expect(await ids('x%')).toEqual(['x%']);
    expect(await ids('x\u{10ffff}')).toEqual(['x\u{10ffff}', 'x\u{10ffff}z']);
    expect(await ids('x\u{d7ff}')).toEqual(['x\u{d7ff}']);
    expect(await ids('é')).toEqual(['é1', 'é2']);
    expect(await ids('nothing')).toEqual([]);
    await index('/upsert/many', records(120));
    expect(idsOf((await index('/fetch/many', { prefix: 'r' })).result)).toHaveLength(100);
  });

  test.each<[unknown, number, RegExp]>([
    [{ ids: ['a'], prefix: 'a' }, 400, /Only one of ids or prefix must be provided\./],
    [{}, 400, /One of ids or prefix/],
    [{ ids: 'a' }, 400, /body\.ids: expected an array of ids/],
    [{ ids: [null] }, 400, /body\.ids\.0/],
    [{ prefix: 5 }, 400, /body\.prefix: expected text/],
    [{ prefix: '\0' }, 400, /U\+0000/],
    [{ ids: new Array(101).fill('a') }, 422, /body\.ids: 101, more than the limit of 100/],
    [undefined, 400, /body/],
  ])('refuses %j', async (body, status, message) => {
    const reply = await index('/fetch', body);
    expect([reply.status, reply.error]).toEqual([status, expect.stringMatching(message)]);
  });
});

describe('range', () => {
  test('pages through everything in insertion order, and says when that was all', async () => {
    await index('/upsert/pages', records(10));
    for (const cursor of ['0', 0, '', null, undefined]) {
      expect(await page('/range/pages', { cursor, limit: 4 })).toEqual({
        nextCursor: '4',
        vectors: records(4).map(({ id }) => ({ id })),
      });
    }
    expect(await page('/range/pages', { cursor: '8', limit: 2, includeVectors: true })).toEqual({
      nextCursor: '',
      vectors: records(2, 8),
    });
    expect(await page('/range/pages', { cursor: '8', limit: 100 })).toMatchObject({ nextCursor: '' });
    expect(await page('/range/pages', { cursor: '999999999999999999', limit: 1 })).toEqual({
      nextCursor: '',
      vectors: [],
    });
    expect(await page('/range/nowhere', { cursor: '0', limit: 1 })).toEqual({ nextCursor: '', vectors: [] });
  });

  test('with a prefix, the end is where no further id begins so', async () => {
    await index('/upsert/mixed', [
      ...records(3),
      { id: 'other', vector },
      ...records(3, 3),
      { id: 'last', vector },
    ]);
    const first = await page('/range/mixed', { cursor: '0', limit: 4, prefix: 'r' });
    expect([idsOf(first.vectors), first.nextCursor]).toEqual([['r0', 'r1', 'r2', 'r3'], '5']);
    const second = await page('/range/mixed', { cursor: first.nextCursor, limit: 2, prefix: 'r' });
    expect([idsOf(second.vectors), second.nextCursor]).toEqual([['r4', 'r5'], '']);
  });

  test('cursors survive deletes, replacements and inserts: nothing is left out, nothing comes twice', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            remove: fc.array(fc.nat({ max: 59 }), { maxLength: 8 }),
            replace: fc.array(fc.nat({ max: 59 }), { maxLength: 8 }),
            insert: fc.nat({ max: 5 }),
            limit: fc.integer({ min: 1, max: 20 }),
          }),
          { minLength: 3, maxLength: 6 },
        ),
        async (steps) => {
          await index('/reset/moving', []);
          await index('/upsert/moving', records(60));
          const removed = new Set<string>();
          const seen: string[] = [];
          let added = 60;
          let cursor = '0';
          for (let i = 0; ; i++) {
            const step = steps[i];
            if (step !== undefined) {
              const ids = step.remove.map((n) => `r${n}`);
              await index('/delete/moving', { ids });
              for (const id of ids) removed.add(id);
              const kept = step.replace.map((n) => `r${n}`).filter((id) => !removed.has(id));
              await index(
                '/upsert/moving',
                kept.map((id) => ({ id, vector })),
              );
              await index('/upsert/moving', records(step.insert, added));
              added += step.insert;
            }
            const { vectors, nextCursor } = await page('/range/moving', { cursor, limit: step?.limit ?? 50 });
            seen.push(...idsOf(vectors).map(String));
            cursor = nextCursor;
            if (cursor === '') break;
          }
          expect(new Set(seen).size).toBe(seen.length);
          const order = seen.map((id) => Number(id.slice(1)));
          expect(order).toEqual([...order].sort((a, b) => a - b));
          const stable = records(60)
            .map(({ id }) => id)
            .filter((id) => !removed.has(id));
          expect(seen).toEqual(expect.arrayContaining(stable));
        },
      ),
      { numRuns: 8 },
    );
  });

  test.each<[unknown, number, RegExp]>([
    [{ cursor: 'x', limit: 1 }, 400, /body\.cursor/],
    [{ cursor: '-1', limit: 1 }, 400, /body\.cursor/],
    [{ cursor: '1; drop', limit: 1 }, 400, /body\.cursor/],
    [{ cursor: '9'.repeat(30), limit: 1 }, 400, /body\.cursor/],
    [{ cursor: 1.5, limit: 1 }, 400, /body\.cursor/],
    [{ cursor: '0', limit: '5' }, 400, /body\.limit/],
    [{ cursor: '0', limit: 0 }, 400, /body\.limit/],
    [{ cursor: '0', limit: 101 }, 422, /body\.limit: 101, more than the limit of 100/],
    [{ cursor: '0', limit: 1, prefx: 'a' }, 400, /prefx/],
  ])('refuses %j', async (body, status, message) => {
    const reply = await index('/range', body);
    expect([reply.status, reply.error]).toEqual([status, expect.stringMatching(message)]);
  });
});

test('what hosted clients send: a range without limit, [] for metadata, flags as text, the empty id', async () => {
  await index('/upsert/hosted', { id: '', vector, metadata: [] });
  await index('/upsert/hosted', [{ id: 'a', vector: [0, 1], metadata: { x: 1 } }]);
  expect(
    await page('/range/hosted', { cursor: '', includeMetadata: 'true', includeVectors: 'false' }),
  ).toEqual({
    nextCursor: '',
    vectors: [
      { id: '', metadata: {} },
      { id: 'a', metadata: { x: 1 } },
    ],
  });
  await index('/upsert/long', records(150));
  const first = await page('/range/long', {});
  expect([first.vectors.length, first.nextCursor]).toEqual([100, '100']);
  const patch = { id: 'a', metadata: [], metadataUpdateMode: 'PATCH' };
  expect((await index('/update/hosted', patch)).result).toEqual({ updated: 1 });
  const get = async () => (await index('/fetch/hosted', { ids: ['', 'a'], includeMetadata: true })).result;
  expect(await get()).toEqual([
    { id: '', metadata: {} },
    { id: 'a', metadata: { x: 1 } },
  ]);
  expect((await index('/update/hosted', { id: 'a', metadata: [] })).result).toEqual({ updated: 1 });
  // no body and blanks name no id, not the empty one
  for (const nothing of [undefined, '', ' '.repeat(100)])
    expect((await index('/delete/hosted', nothing)).status).toBe(400);
  expect((await index('/delete/hosted', [])).result).toEqual({ deleted: 0 });
  expect(await get()).toEqual([
    { id: '', metadata: {} },
    { id: 'a', metadata: {} },
  ]);
  expect((await index('/delete/hosted', { ids: [''] })).result).toEqual({ deleted: 1 });
});

describe('delete', () => {
  const count = async (namespace: string) =>
    ((await index('/info')).result as { namespaces: Record<string, { vectorCount: number }> }).namespaces[
      namespace
    ]?.vectorCount;

  test('takes every form that clients send, and counts what was there', async () => {
    await index('/upsert/forms', [...records(9), { id: 7, vector }, { id: 'true', vector }]);
    const deleted = async (body: unknown, method = 'DELETE') => {
      const reply = await index('/delete/forms', body, { method });
      expect(reply.status).toBe(200);
      return (reply.result as { deleted: number }).deleted;
    };
    expect(await deleted({ ids: ['r0', 'r1', 'r1', 'nobody'] })).toBe(2);
    expect(await deleted(['r2'], 'POST')).toBe(1);
    expect(await deleted({ ids: 'r3' })).toBe(1);
    expect(await deleted('r4')).toBe(1);
    expect(await deleted('"r5"')).toBe(1);
    expect(await deleted('7')).toBe(1);
    expect(await deleted('no=such')).toBe(0);
    expect(await deleted([])).toBe(0);
    expect(await count('forms')).toBe(4);
    expect((await index('/delete/nowhere', ['x'])).result).toEqual({ deleted: 0 });
  });

  test('by prefix and by filter', async () => {
    await index(
      '/upsert/by',
      records(12).map((record, i) => ({ ...record, metadata: { even: i % 2 === 0 } })),
    );
    expect((await index('/delete/by', { prefix: 'r1' })).result).toEqual({ deleted: 3 });
    expect((await index('/delete/by', { filter: 'even = true' })).result).toEqual({ deleted: 5 });
    expect(idsOf((await page('/range/by', { limit: 50 })).vectors)).toEqual(['r3', 'r5', 'r7', 'r9']);
    expect(await count('by')).toBe(4);
  });

  test.each<unknown>([
    undefined,
    'null',
    {},
    { ids: ['a'], prefix: 'a' },
    { prefix: 'a', filter: 'a = 1' },
    { prefix: '' },
    { filter: '' },
  ])('refuses %j, which selects nothing or twice', async (body) => {
    const reply = await index('/delete', body);
    expect([reply.status, reply.error]).toEqual([
      400,
      expect.stringContaining('Only and only one of the ids, prefix, or filter must be provided.'),
    ]);
  });

  test('broken JSON is no id', async () => {
    for (const body of ['{"ids":["a"]', '["a"', '"a'])
      expect((await index('/delete', body)).error).toMatch(/not valid JSON/);
  });
});

describe('update', () => {
  test('changes what is given and nothing else', async () => {
    const record = { id: 'u', vector: [1, 2], metadata: { a: 1, b: { c: 2 } }, data: 'text' };
    await index('/upsert/update', [record, { id: 'bare', vector }]);
    const get = async (id: string) =>
      ((await index('/fetch/update', { ids: [id], ...all })).result as unknown[])[0];
    const update = async (body: object) => {
      const reply = await index('/update/update', body);
      expect([reply.status, reply.error]).toEqual([200, undefined]);
      return reply.result;
    };
    expect(await update({ id: 'u', vector: [3, 4] })).toEqual({ updated: 1 });
    expect(await get('u')).toEqual({ ...record, vector: [3, 4] });
    expect(
      await update({ id: 'u', metadata: { b: { d: 3 }, a: null }, metadataUpdateMode: 'PATCH' }),
    ).toEqual({ updated: 1 });
    expect(await get('u')).toEqual({ ...record, vector: [3, 4], metadata: { b: { c: 2, d: 3 } } });
    expect(await update({ id: 'u', metadata: { z: 1 }, data: 'new', vector: null })).toEqual({ updated: 1 });
    expect(await get('u')).toEqual({ id: 'u', vector: [3, 4], metadata: { z: 1 }, data: 'new' });
    expect(await update({ id: 'bare', metadata: { a: 1, b: null }, metadataUpdateMode: 'PATCH' })).toEqual({
      updated: 1,
    });
    expect(await get('bare')).toEqual({ id: 'bare', vector, metadata: { a: 1 } });
    expect(await update({ id: 'nobody', vector })).toEqual({ updated: 0 });
    expect(await update({ id: 'nobody', metadata: {}, metadataUpdateMode: 'PATCH' })).toEqual({ updated: 0 });
    expect((await index('/update/nowhere', { id: 'u', vector })).result).toEqual({ updated: 0 });
    expect(idsOf((await page('/range/update', { limit: 10 })).vectors)).toEqual(['u', 'bare']);
  });

  test('patches at the same time are all kept', async () => {
    await index('/upsert/patched', { id: 'p', vector });
    const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
    await Promise.all(
      keys.map((key) =>
        index('/update/patched', { id: 'p', metadata: { [key]: 1 }, metadataUpdateMode: 'PATCH' }),
      ),
    );
    const { result } = await index('/fetch/patched', { ids: ['p'], includeMetadata: true });
    expect(Object.keys((result as { metadata: object }[])[0]?.metadata ?? {})).toHaveLength(20);
  });

  test.each<[object, number, RegExp]>([
    [{ id: 'u' }, 400, /something to update/],
    [{ vector }, 400, /body\.id/],
    [{ id: 'u', vector: [1, 2, 3] }, 422, /Invalid vector dimension: 3, expected: 2/],
    [{ id: 'u', vector: [0, 0] }, 422, /length 0/],
    [{ id: 'u', sparseVector: { indices: [1], values: [1] } }, 422, /this index is dense/],
    [{ id: 'u', metadata: 'x' }, 400, /body\.metadata: expected an object/],
    [{ id: 'u', metadata: {}, metadataUpdateMode: 'MERGE' }, 400, /metadataUpdateMode/],
    [{ id: 'u', metadata: { a: 'x'.repeat(70_000) } }, 422, /more than the limit of 65536/],
    [{ id: 'u', vector, extra: 1 }, 400, /extra/],
  ])('refuses %.80j', async (body, status, message) => {
    const reply = await index('/update', body);
    expect([reply.status, reply.error]).toEqual([status, expect.stringMatching(message)]);
  });

  test('merging follows RFC 7396, appendix A, and treats __proto__ as a key', () => {
    const cases: [unknown, unknown, unknown][] = [
      [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
      [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
      [{ a: 'b' }, { a: null }, {}],
      [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
      [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
      [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
      [{ e: null }, { a: 1 }, { e: null, a: 1 }],
      [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    ];
    for (const [target, patch, expected] of cases) expect(mergePatch(target, patch)).toEqual(expected);
    const merged = mergePatch({}, JSON.parse('{"__proto__":{"polluted":1}}'));
    expect(JSON.stringify(merged)).toBe('{"__proto__":{"polluted":1}}');
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe('reset', () => {
  const tables = () =>
    withPostgres(async (client) => {
      const { rows } = await client.query<{ relname: string }>(
        "select relname from pg_class where relnamespace = $1::regnamespace and relkind = 'r' and relname ~ '^(records|postings|resumable)_'",
        [SCHEMA],
      );
      let count = 0;
      for (const { relname } of rows) {
        const { rows: counted } = await client.query<{ n: string }>(
          `select count(*) as n from ${SCHEMA}.${relname}`,
        );
        count += Number(counted[0]?.n);
      }
      return count;
    });

  test('empties one namespace or all, which stay and count from 0 again', async () => {
    await emptied('/upsert', records(3));
    await emptied('/upsert/a', records(3));
    await emptied('/upsert/b', records(3));
    expect((await emptied('/reset/a', [])).result).toBe('Success');
    const counts = async () => {
      const { result } = await emptied('/info');
      const { namespaces } = result as { namespaces: Record<string, { vectorCount: number }> };
      return Object.fromEntries(
        Object.entries(namespaces).map(([name, { vectorCount }]) => [name, vectorCount]),
      );
    };
    expect(await counts()).toEqual({ '': 3, a: 0, b: 3 });
    expect((await emptied('/reset', undefined, { method: 'DELETE' })).result).toBe('Success');
    expect(await counts()).toEqual({ '': 0, a: 0, b: 3 });
    expect((await emptied('/reset/nowhere', [])).result).toBe('Success');
    await emptied('/upsert/a', records(2));
    expect((await emptied('/reset?all', [])).result).toBe('Success');
    expect(await counts()).toEqual({ '': 0, a: 0, b: 0 });
    await emptied('/upsert/b', records(2));
    const { result } = await emptied('/range/b', { limit: 1 });
    expect(result).toEqual({ nextCursor: '1', vectors: [{ id: 'r0' }] });
  });

  test('leaves nothing behind, sparse parts and resumable queries among it', async () => {
    const before = await tables();
    const part = (i: number) => ({ id: `s${i}`, sparseVector: { indices: [i, i + 1], values: [1, 2] } });
    await sparse('/upsert/gone', [part(1), part(2)]);
    await sparse('/upsert', [part(1)]);
    await sparse('/resumable-query/gone', { sparseVector: { indices: [1], values: [1] }, topK: 1 });
    expect(await tables()).toBe(before + 3 + 6 + 1);
    await sparse('/reset/gone', []);
    // the rows of an emptied namespace go in the background
    await eventually(async () => expect(await tables()).toBe(before + 1 + 2));
    await sparse('/reset', []);
    await eventually(async () => expect(await tables()).toBe(before));
  });

  test('goes on while somebody reads the table, and while others write', async () => {
    await emptied('/upsert/busy', records(50));
    await withPostgres(async (client) => {
      await client.query('begin');
      await client.query(`select count(*) from ${SCHEMA}.records_1, ${SCHEMA}.records_2`);
      expect((await emptied('/reset?all', [])).result).toBe('Success');
      expect((await emptied('/fetch/busy', { ids: ['r1'] })).result).toEqual([null]);
      await client.query('commit');
    });
    const writes = Array.from({ length: 12 }, (_, i) => emptied(`/upsert/w${i % 3}`, records(5, i * 5)));
    const resets = Array.from({ length: 6 }, () => emptied('/reset?all', []));
    for (const { status } of await Promise.all([...writes, ...resets])) expect(status).toBe(200);
    const { result } = await emptied('/info');
    for (const [name, { vectorCount }] of Object.entries(
      (result as { namespaces: Record<string, { vectorCount: number }> }).namespaces,
    )) {
      const found = (await emptied(`/range/${name}`, { limit: 100 })).result as Page;
      expect([name, found.vectors.length]).toEqual([name, vectorCount]);
    }
  });
});

describe('namespaces', () => {
  test('are listed, renamed and deleted; the default one stays', async () => {
    await emptied('/reset?all', []);
    for (const name of ['one', 'two', 'ä b'])
      await emptied(`/upsert/${encodeURIComponent(name)}`, records(2));
    const list = async () => (await emptied('/list-namespaces', 'null')).result as string[];
    expect((await list())[0]).toBe('');
    expect(await list()).toEqual(expect.arrayContaining(['one', 'two', 'ä b']));
    const rename = (body: object) => emptied('/rename-namespace', body);
    expect((await rename({ namespace: 'one', newNamespace: 'uno' })).result).toEqual({ renamed: true });
    expect(await list()).not.toContain('one');
    expect(idsOf(((await emptied('/range/uno', { limit: 9 })).result as Page).vectors)).toEqual(['r0', 'r1']);
    expect((await rename({ namespace: 'uno', newNamespace: 'two' })).status).toBe(409);
    expect((await rename({ namespace: 'uno', newNamespace: 'two', deleteExisting: true })).result).toEqual({
      renamed: true,
    });
    expect((await rename({ namespace: 'two', newNamespace: 'two' })).result).toEqual({ renamed: true });
    expect((await emptied('/delete-namespace/two', [])).result).toBe('Success');
    expect(await list()).not.toContain('two');
    const missing = await emptied('/delete-namespace/two', []);
    expect([missing.status, missing.error]).toEqual([
      404,
      'Namespace two for the index emptied does not exist',
    ]);
    expect((await rename({ namespace: 'two', newNamespace: 'x' })).status).toBe(404);
    for (const path of ['/delete-namespace', '/delete-namespace/'])
      expect((await emptied(path, [])).status).toBe(400);
    expect((await rename({ namespace: '', newNamespace: 'x' })).status).toBe(400);
    expect((await rename({ namespace: 'ä b', newNamespace: '' })).status).toBe(400);
    expect((await emptied('/delete-namespace/%C3%A4%20b', [], { method: 'DELETE' })).result).toBe('Success');
    await emptied('/upsert/two', records(1));
    expect(((await emptied('/range/two', { limit: 9 })).result as Page).vectors).toHaveLength(1);
  });
});

describe('random', () => {
  test('gives each record in its turn, also among many gaps, and null where there is none', async () => {
    expect((await index('/random/nowhere')).result).toBeNull();
    await index('/upsert/dice', records(100));
    const draw = async () =>
      (await index('/random/dice', undefined, { method: 'GET' })).result as { id: string; vector: number[] };
    const seen = new Set(await Promise.all(Array.from({ length: 60 }, async () => (await draw()).id)));
    expect(seen.size).toBeGreaterThan(20);
    await index('/delete/dice', { ids: records(98, 1).map(({ id }) => id) });
    const left = await Promise.all(Array.from({ length: 30 }, draw));
    expect(new Set(left.map(({ id }) => id))).toEqual(new Set(['r0', 'r99']));
    expect(left[0]?.vector).toHaveLength(2);
    await index('/upsert/sparse-dice', records(1_000).slice(0, 1));
    await index('/reset/dice', []);
    expect((await index('/random/dice')).result).toBeNull();
  });
});

test('several queries in one request are answered in their order; one alone is a flat list', async () => {
  await index('/upsert/several', records(5));
  const ask = (topK: number) => ({ vector: [1, 0], topK });
  expect((await index('/query/several', [ask(1)])).result).toEqual([{ id: 'r0', score: 1 }]);
  const { result } = await index('/query/several', [3, 1, 2, 5, 4, 1].map(ask));
  expect((result as unknown[][]).map((list) => list.length)).toEqual([3, 1, 2, 5, 4, 1]);
  expect((await index('/query/several', [])).result).toEqual([]);
  const wrong = await index('/query/several', [ask(1), { vector: [1], topK: 1 }]);
  expect([wrong.status, wrong.error]).toEqual([422, 'Invalid vector dimension: 1, expected: 2']);
  expect((await index('/query/several', new Array(101).fill(ask(1)))).status).toBe(400);
});

test('a read-only token reads and changes nothing', async () => {
  await index('/upsert/guarded', records(2));
  const token = READ_ONLY;
  const writes: [string, unknown][] = [
    ['/upsert/guarded', records(1)],
    ['/upsert-data/guarded', { id: 'x', data: 'y' }],
    ['/update/guarded', { id: 'r0', vector }],
    ['/delete/guarded', ['r0']],
    ['/reset/guarded', []],
    ['/reset?all', []],
    ['/delete-namespace/guarded', []],
    ['/rename-namespace', { namespace: 'guarded', newNamespace: 'x' }],
  ];
  for (const [path, body] of writes)
    expect([path, (await index(path, body, { token })).status]).toEqual([path, 403]);
  const reads: [string, unknown][] = [
    ['/query/guarded', { vector }],
    ['/fetch/guarded', ['r0']],
    ['/range/guarded', { limit: 1 }],
    ['/random/guarded', undefined],
    ['/info', undefined],
    ['/list-namespaces', undefined],
    ['/resumable-query/guarded', { vector, topK: 1 }],
  ];
  for (const [path, body] of reads)
    expect([path, (await index(path, body, { token })).status]).toEqual([path, 200]);
  expect(((await index('/range/guarded', { limit: 9 })).result as Page).vectors).toHaveLength(2);
});
