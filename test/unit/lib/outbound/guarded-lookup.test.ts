import type { LookupAddress, lookup } from 'node:dns';
import { AddressGuard } from '../../../../src/lib/outbound/address-guard.js';
import { guardedLookup, sharedLookup } from '../../../../src/lib/outbound/guarded-lookup.js';

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;
const PUBLIC = { address: '93.184.215.14', family: 4 };
const PRIVATE = { address: '10.0.0.1', family: 4 };

function lookups() {
  const asked: { name: string; answer: Answer }[] = [];
  const resolve = ((name: string, _options: object, answer: Answer) =>
    void asked.push({ name, answer })) as unknown as typeof lookup;
  const guarded = guardedLookup(
    new AddressGuard([]),
    sharedLookup(resolve),
    443,
    (reason) => new Error(reason),
  );
  const look = (name: string) =>
    new Promise<unknown>((done, fail) => {
      guarded(name, { all: true }, (error, addresses) => (error === null ? done(addresses) : fail(error)));
    });
  return { asked, look };
}

it('asks once for a name that several look up at the same time, and anew afterwards', async () => {
  const { asked, look } = lookups();
  const both = Promise.all([look('a.example'), look('a.example')]);
  const other = look('b.example');
  expect(asked.map(({ name }) => name)).toEqual(['a.example', 'b.example']);
  asked[0]?.answer(null, [PRIVATE, PUBLIC]);
  expect(await both).toEqual([[PUBLIC], [PUBLIC]]);
  const again = look('a.example');
  asked[2]?.answer(null, [PRIVATE]);
  await expect(again).rejects.toThrow('10.0.0.1 is not a public address');
  asked[1]?.answer(new Error('ENOTFOUND'), []);
  await expect(other).rejects.toThrow('ENOTFOUND');
});
