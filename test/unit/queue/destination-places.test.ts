import { DestinationPlaces, type Entry } from '../../../src/services/queue/destination-places.js';

const URL_A = 'http://a.example/1';
let now = 0;
const places = (most: number, mostWaiting = 10) =>
  new DestinationPlaces({ most, mostWaiting, now: () => now });

function leaveOf(entry: Entry): () => void {
  if ('awayMs' in entry) throw new Error(`no place for ${entry.awayMs} ms`);
  return entry.leave;
}

it('counts by host and port, whatever the path and user', async () => {
  const some = places(1);
  leaveOf(await some.enter(URL_A));
  expect(await some.enter('http://user@A.example:80/2')).toMatchObject({ awayMs: 250 });
  expect(await some.enter('http://a.example:81/')).toHaveProperty('leave');
  expect(await some.enter('http://b.example/')).toHaveProperty('leave');
});

it('sends away at once where nothing moves, for longer the more there are', async () => {
  const some = places(1);
  const leave = leaveOf(await some.enter(URL_A));
  const away: number[] = [];
  for (let i = 0; i < 4_000; i++) away.push(((await some.enter(URL_A)) as { awayMs: number }).awayMs);
  expect(away[0]).toBe(250);
  expect(away[999]).toBe(10_000);
  expect(away.at(-1)).toBe(30_000);
  leave();
  expect(await some.enter(URL_A)).toHaveProperty('leave');
  expect(await some.enter(URL_A)).toEqual({ awayMs: 250 });
});

it('hands the place to the one that waits longest where attempts end', async () => {
  const some = places(2, 2);
  const first = leaveOf(await some.enter(URL_A));
  leaveOf(await some.enter(URL_A));
  first();
  const third = leaveOf(await some.enter(URL_A));
  const order: number[] = [];
  const waiting = [4, 5].map(async (n) => {
    const entry = await some.enter(URL_A);
    order.push(n);
    return leaveOf(entry);
  });
  expect(await some.enter(URL_A)).toMatchObject({ awayMs: 250 });
  third();
  (await (waiting[0] as Promise<() => void>))();
  await waiting[1];
  expect(order).toEqual([4, 5]);
});

it('lets one that waited in vain go, and gives its place to nobody', async () => {
  const some = places(1);
  leaveOf(await some.enter(URL_A))();
  const leave = leaveOf(await some.enter(URL_A));
  now = 1_000;
  expect(await some.enter(URL_A)).toMatchObject({ awayMs: 250 });
  leave();
  leaveOf(await some.enter(URL_A))();
  expect(await some.enter(URL_A)).toHaveProperty('leave');
});
