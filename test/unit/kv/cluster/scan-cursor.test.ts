import fc from 'fast-check';
import { SLOTS } from '../../../../src/services/kv/cluster/key-slot.js';
import { nextScanCursor, readScanCursor } from '../../../../src/services/kv/cluster/scan-cursor.js';

/** Nodes at the slots that they begin with, each in several pieces maybe. */
const layout = fc
  .array(fc.tuple(fc.integer({ min: 0, max: SLOTS - 1 }), fc.integer({ min: 0, max: 5 })), {
    minLength: 1,
    maxLength: 12,
  })
  .map((starts) => {
    const owners = new Array<string | undefined>(SLOTS).fill(undefined);
    for (const [from, node] of starts.sort(([a], [b]) => a - b)) owners.fill(`10.0.0.${node}:6379`, from);
    return owners;
  });

const ownersOf = (owners: readonly (string | undefined)[]) => ({ ownerOf: (slot: number) => owners[slot] });

test('a scan visits every primary once, each with its own cursors in order', () => {
  fc.assert(
    fc.property(
      layout,
      fc.array(fc.bigInt({ min: 1n, max: 2n ** 40n }), { maxLength: 3 }),
      (owners, pages) => {
        const topology = ownersOf(owners);
        const visits: [string, string][] = [];
        let cursor = '0';
        do {
          const position = readScanCursor(cursor, topology);
          if (position?.node === undefined) throw new Error(`no way on from ${cursor}`);
          const { slot, node, cursor: own } = position;
          visits.push([node, own]);
          const done = visits.filter(([visited]) => visited === node).length - 1;
          cursor = nextScanCursor({ slot, node, cursor: own }, String(pages[done] ?? 0), topology);
          expect(BigInt(cursor)).toBeLessThan(2n ** 64n);
        } while (cursor !== '0');
        const nodes = [...new Set(owners.filter((node) => node !== undefined))];
        expect(visits).toEqual(
          nodes.flatMap((node) => ['0', ...pages.map(String)].map((own) => [node, own])),
        );
      },
    ),
  );
});

test("a node's cursor is not used on the one that took over: that one is scanned from its start", () => {
  const before = ownersOf(new Array(SLOTS).fill('10.0.0.1:6379'));
  const after = ownersOf(new Array(SLOTS).fill('10.0.0.2:6379'));
  const cursor = nextScanCursor({ slot: 0, node: '10.0.0.1:6379', cursor: '0' }, '77', before);
  expect(readScanCursor(cursor, before)).toEqual({ slot: 0, node: '10.0.0.1:6379', cursor: '77' });
  expect(readScanCursor(cursor, after)).toEqual({ slot: 0, node: '10.0.0.2:6379', cursor: '0' });
});

test.each(['', 'x', '-1', '1.5', ' 1', '9'.repeat(31)])('%j is no cursor', (text) => {
  expect(readScanCursor(text, ownersOf([]))).toBeUndefined();
});
