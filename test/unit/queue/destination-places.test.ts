import type { Ending, Entry, PlacesOptions } from '../../../src/services/queue/destinations/attempts.js';
import { DestinationPlaces } from '../../../src/services/queue/destinations/destination-places.js';
import type { Ticket } from '../../../src/services/queue/message/message.js';

const URL_A = 'http://a.example/1';
let now: number;
let messages = 0;
/** Messages that were called back. */
const called: Ticket[] = [];
const open: DestinationPlaces[] = [];
beforeEach(() => {
  jest.useFakeTimers();
  now = 0;
  called.length = 0;
});
afterEach(() => {
  for (const places of open.splice(0)) places.stop();
  jest.useRealTimers();
});

function places(change: Partial<PlacesOptions> = {}): DestinationPlaces {
  const some = new DestinationPlaces({
    active: 200,
    waiting: 1_000,
    perDestination: 100,
    slowAfterMs: 500,
    circuitFailures: 3,
    circuitOpenMs: 10_000,
    recall: (tickets) => void called.push(...tickets),
    now: () => now,
    ...change,
  });
  open.push(some);
  return some;
}

const visitor = (url: string, flowKey?: string) => ({
  ticket: { id: `m${++messages}`, attempt: 0 },
  url,
  flowKey,
  bytes: 1,
  overdueMs: 0,
  timeoutMs: 60_000,
  onWaiting: () => undefined,
});
const enter = (some: DestinationPlaces, url: string, flowKey?: string) => some.enter(visitor(url, flowKey));

async function leaveOf(entry: Entry | Promise<Entry>): Promise<(ending: Ending) => void> {
  const had = await entry;
  if (had.kind !== 'place') throw new Error(`no place: ${JSON.stringify(had)}`);
  return had.leave;
}
/** Time passes, on all clocks. */
const pass = async (ms: number) => {
  now += ms;
  await jest.advanceTimersByTimeAsync(ms);
};
/** An attempt that is answered at once. */
const answer = async (some: DestinationPlaces, url: string) => (await leaveOf(enter(some, url)))('answered');
/** How many places one after the other are had at once. */
async function taken(some: DestinationPlaces, url: string, most: number, key?: string): Promise<number> {
  for (let count = 0; count < most; count++) {
    const entry = enter(some, url, key);
    if (entry instanceof Promise || entry.kind !== 'place') return count;
  }
  return most;
}

it('counts by scheme, host and port, whatever the path and user', async () => {
  const some = places({ perDestination: 1 });
  await leaveOf(enter(some, URL_A));
  expect(await enter(some, 'http://user@A.example:80/2')).toEqual({ kind: 'away', awayMs: 250 });
  for (const other of ['http://a.example:81/', 'https://a.example/', 'http://b.example/'])
    expect(await enter(some, other)).toHaveProperty('kind', 'place');
});

it('lets those who are turned away come again one after the other, the same number of each destination', async () => {
  const some = places({ perDestination: 1 });
  await leaveOf(enter(some, URL_A));
  const away = (url: string) => (enter(some, url) as { awayMs: number }).awayMs;
  const first = Array.from({ length: 1_000 }, () => away(URL_A));
  expect([first[0], first[1], first[999]]).toEqual([250, 260, 10_240]);
  await leaveOf(enter(some, 'http://b.example/'));
  expect([away('http://b.example/'), away('http://b.example/')]).toEqual([250, 270]);
  for (let i = 0; i < 40_000; i++) away(URL_A);
  expect(away(URL_A)).toBe(600_000);
});

it('lets those who were turned away by one that answers come again as fast as it answers, whoever else hangs', async () => {
  const some = places();
  for (let host = 0; host < 100; host++) await taken(some, `http://h${host}.example/`, 100);
  await pass(600);
  for (let host = 0; host < 100; host++) await taken(some, `http://h${host}.example/`, 100);
  await pass(600);
  const first = await leaveOf(enter(some, URL_A));
  await pass(10);
  first('answered');
  await taken(some, URL_A, 200);
  const away: number[] = [];
  for (let i = 0; i < 500; i++) {
    const entry = enter(some, URL_A);
    if (!(entry instanceof Promise) && entry.kind === 'away') away.push(entry.awayMs);
  }
  expect(away.length).toBeGreaterThan(400);
  expect(Math.max(...away)).toBeLessThan(1_000);
});

it('calls those back, once each, who were sent away for long before their destination first answered', async () => {
  const some = places();
  for (let round = 0; round < 2; round++) {
    for (let host = 0; host < 100; host++) await taken(some, `http://h${host}.example/`, 100);
    await pass(600);
  }
  const first = await leaveOf(enter(some, URL_A));
  const away: Ticket[] = [];
  while (away.length < 130) {
    const who = visitor(URL_A);
    const entry = await some.enter(who);
    if (entry.kind === 'away' && entry.awayMs > 2_500) away.push(who.ticket);
  }
  await pass(400);
  expect(called).toEqual([]);
  first('answered');
  await pass(400);
  expect(called).toEqual(expect.arrayContaining(away));
  const times = called.length;
  expect(new Set(called.map(({ id }) => id)).size).toBe(times);
  // it falls silent again, and answers again
  await pass(2_000);
  const entries = await Promise.all(away.map((ticket) => some.enter({ ...visitor(URL_A), ticket })));
  await pass(2_000);
  expect(entries.filter(({ kind }) => kind === 'away')).not.toEqual([]);
  const leave = await leaveOf(entries.find(({ kind }) => kind === 'place') as Entry);
  leave('answered');
  await pass(500);
  expect(called.length).toBe(times);
});

it('hands the place of a destination that answers to the one that waits longest', async () => {
  const some = places({ perDestination: 2 });
  await answer(some, URL_A);
  const first = await leaveOf(enter(some, URL_A));
  await leaveOf(enter(some, URL_A));
  const order: number[] = [];
  const waiting = [3, 4].map(async (n) => {
    const leave = await leaveOf(enter(some, URL_A));
    order.push(n);
    return leave;
  });
  first('answered');
  (await (waiting[0] as Promise<(ending: Ending) => void>))('answered');
  await waiting[1];
  expect(order).toEqual([3, 4]);
});

it('sends away one that waited in vain, and gives its place to nobody', async () => {
  const some = places({ perDestination: 1 });
  await answer(some, URL_A);
  const leave = await leaveOf(enter(some, URL_A));
  const second = enter(some, URL_A);
  await pass(250);
  expect(await second).toEqual({ kind: 'away', awayMs: 250 });
  leave('answered');
  await leaveOf(enter(some, URL_A));
});

it('gives the active place of an attempt that waits to others', async () => {
  const some = places({ active: 4, perDestination: 4 });
  const who = { ...visitor(URL_A), onWaiting: jest.fn() };
  const leave = await leaveOf(some.enter(who));
  expect(who.onWaiting).not.toHaveBeenCalled();
  await pass(700);
  expect(who.onWaiting).toHaveBeenCalledTimes(1);
  expect(some.stats().waiting).toBe(1);
  expect(some.list(9)).toMatchObject([{ destination: 'http://a.example', active: 0, waiting: 1 }]);
  leave('answered');
  expect(some.stats().waiting).toBe(0);
  expect(some.list(9)).toEqual([]);
});

it.each([1, 2, 10, 100, 150])('keeps places for whoever answers beside %p that hang', async (hosts) => {
  const some = places({ waiting: 2_000 });
  await answer(some, URL_A);
  for (let second = 0; second < 30; second++) {
    for (let host = 0; host < hosts; host++) await taken(some, `http://h.example:${1_000 + host}/`, 100);
    // one that answers has a place whenever it asks, and one that is new a moment later
    await answer(some, URL_A);
    await pass(700);
    await answer(some, `http://new${second}.example/`);
  }
  expect(some.list(1_000)).toHaveLength(hosts);
  expect(some.stats().waiting).toBeLessThan(2_000);
  // somebody who answers gets half of what is active
  expect(await taken(some, URL_A, 200)).toBe(100);
});

it('keeps half of the active places for who answers when all waiting places are taken', async () => {
  const some = places({ active: 20, waiting: 8 });
  await answer(some, URL_A);
  for (let host = 0; host < 200; host++) {
    await taken(some, `http://h${host}.example/`, 100);
    await pass(100);
  }
  expect(some.stats().waiting).toBe(8);
  expect(await enter(some, 'http://new.example/')).toMatchObject({ kind: 'away' });
  expect(await taken(some, URL_A, 200)).toBe(5);
});

it('gives a flow-control key a share of its own, however many destinations it names', async () => {
  const some = places();
  for (let second = 0; second < 30; second++) {
    for (let host = 0; host < 300; host++) await taken(some, `http://h${host}.example/`, 100, 'greedy');
    await pass(1_000);
  }
  expect(some.stats().waiting).toBeLessThanOrEqual(201);
  expect(await taken(some, 'http://one.example/', 100, 'other')).toBeGreaterThan(10);
  expect(await taken(some, 'http://two.example/', 100, 'greedy')).toBe(0);
});

describe('a destination that never answers', () => {
  async function opened(): Promise<DestinationPlaces> {
    const some = places();
    for (let i = 0; i < 3; i++) {
      const leave = await leaveOf(enter(some, URL_A));
      await pass(1_000);
      leave('failed');
    }
    expect(some.list(9)).toMatchObject([{ circuit: 'open', failures: 3, openedInMs: 0, probeInMs: 10_000 }]);
    return some;
  }

  it('has its circuit opened; then one message each time is a probe', async () => {
    const some = await opened();
    expect(await enter(some, URL_A)).toEqual({ kind: 'away', awayMs: 10_000 });
    await pass(10_000);
    const probe = await leaveOf(enter(some, URL_A));
    expect(await enter(some, URL_A)).toMatchObject({ kind: 'away' });
    expect(some.stats()).toMatchObject({ open: 0, halfOpen: 1, opened: 1 });
    // the next one begins although the first still hangs
    await pass(10_000);
    await leaveOf(enter(some, URL_A));
    probe('failed');
    expect(some.stats()).toMatchObject({ open: 0, halfOpen: 1, opened: 1 });
  });

  it('has it closed by any answer', async () => {
    const some = await opened();
    await pass(10_000);
    (await leaveOf(enter(some, URL_A)))('answered');
    expect(some.stats()).toMatchObject({ open: 0, halfOpen: 0 });
    await leaveOf(enter(some, URL_A));
    await leaveOf(enter(some, URL_A));
  });

  it('fails a message without an attempt that was kept back for as long as its attempt might have waited', async () => {
    const some = await opened();
    const late = { ...visitor(URL_A), overdueMs: 90_000 };
    expect(await some.enter(late)).toMatchObject({ kind: 'away' });
    for (let i = 0; i < 6; i++) {
      await pass(10_000);
      await leaveOf(enter(some, URL_A));
    }
    expect(await some.enter({ ...late, overdueMs: 59_000 })).toMatchObject({ kind: 'away' });
    expect(await some.enter(late)).toEqual({
      kind: 'rejected',
      reason:
        'not attempted: the last 3 attempts at http://a.example had no answer, and its circuit has been open for 60 s',
    });
  });
});

it('opens no circuit for what fails at once or is interrupted, nor at all when that is wanted', async () => {
  const some = places();
  for (let i = 0; i < 30; i++) (await leaveOf(enter(some, URL_A)))(i % 2 ? 'failed' : 'interrupted');
  expect(some.stats().open).toBe(0);
  const never = places({ circuitFailures: 0 });
  for (let i = 0; i < 30; i++) {
    const leave = await leaveOf(enter(never, URL_A));
    await pass(1_000);
    leave('failed');
  }
  expect(never.stats()).toMatchObject({ open: 0, opened: 0 });
});

it('remembers a bounded number of destinations', async () => {
  const some = places();
  const leave = await leaveOf(enter(some, URL_A));
  for (let i = 0; i < 20_000; i++) await answer(some, `http://h${i}.example/`);
  leave('answered');
  expect(
    (some as unknown as { destinations: { destinations: Map<string, unknown> } }).destinations.destinations
      .size,
  ).toBeLessThanOrEqual(10_000);
});
