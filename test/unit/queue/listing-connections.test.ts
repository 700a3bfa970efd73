import { LightWork } from '../../../src/lib/light-work.js';
import type { Database } from '../../../src/lib/postgres/postgres.js';
import { ListingConnections } from '../../../src/services/queue/store/listing-connections.js';

test('three pages are read or made into replies at once, whatever connections are free', async () => {
  const listings = new ListingConnections({} as Database, 40, new LightWork());
  const made: (() => void)[] = [];
  const all = Array.from({ length: 9 }, () =>
    listings.page(() => new Promise<void>((resolve) => made.push(resolve)), new AbortController().signal),
  );
  let most = 0;
  for (let done = 0; done < 9; done++) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, made.length);
    made.shift()?.();
  }
  await Promise.all(all);
  expect(most).toBe(3);
});
