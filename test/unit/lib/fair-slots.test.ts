import { FairSlots, type LaneDoor } from '../../../src/lib/fair-slots.js';

const WAIT_MS = 1_000;
const never = new AbortController().signal;

function setUp(capacity = 9, maxWaiting = 100, processors = 8) {
  const clock = { at: 0 };
  const slots = new FairSlots({ capacity, waitMs: WAIT_MS, maxWaiting, now: () => clock.at, processors });
  return { slots, clock, lane: (tenant: string) => slots.lane(tenant) };
}

/** Takes places until there is none. @returns how many */
function fill(door: LaneDoor): number {
  let taken = 0;
  while (door.tryEnter()) taken++;
  return taken;
}

/** Waits for a place; `got` notes who has one. */
function wait(door: LaneDoor, name: string, got: string[], signal = never): void {
  door.enter(signal).then(
    () => got.push(name),
    (error: Error) => got.push(`${name}: ${error.message}`),
  );
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('nobody takes the last places: one kind of work leaves some to the others, a tenant to the other tenants', () => {
  const { lane } = setUp();
  expect([fill(lane('a')), fill(lane('a')), fill(lane('b')), fill(lane('c'))]).toEqual([7, 1, 1, 0]);
});

test.each([
  [1, 1],
  [2, 2],
  [4, 3],
  [9, 7],
  [40, 30],
])('of %d places one kind of work alone takes %d', (capacity, taken) => {
  expect(fill(setUp(capacity).lane('a'))).toBe(taken);
});

test('a place that becomes free goes to the tenant with the fewest, and there to the kind with the fewest', async () => {
  const { lane } = setUp(4);
  const [slow, quick, other] = [lane('a'), lane('a'), lane('b')];
  fill(slow);
  expect(other.tryEnter()).toBe(true);
  const got: string[] = [];
  wait(slow, 'slow', got);
  wait(quick, 'quick', got);
  wait(other, 'other', got);
  slow.leave(0);
  slow.leave(0);
  slow.leave(0);
  await settled();
  expect(got).toEqual(['other', 'quick', 'slow']);
});

test('among equals those who were served longest ago go first, in a lane whoever came first', async () => {
  const { lane } = setUp(1);
  const [a, b] = [lane('a'), lane('b')];
  expect(a.tryEnter()).toBe(true);
  const got: string[] = [];
  for (const name of ['a1', 'a2', 'a3']) wait(a, name, got);
  for (const name of ['b1', 'b2']) wait(b, name, got);
  for (let i = 0; i < 5; i++) {
    (got.at(-1)?.startsWith('b') === true ? b : a).leave(0);
    await settled();
  }
  expect(got).toEqual(['b1', 'a1', 'b2', 'a2', 'a3']);
});

test('who comes while others of its lane wait goes behind them', async () => {
  const { lane } = setUp(1);
  const door = lane('a');
  door.tryEnter();
  const got: string[] = [];
  wait(door, 'first', got);
  door.leave(0);
  expect(door.tryEnter()).toBe(false);
  await settled();
  expect(got).toEqual(['first']);
});

/** Uses all places that a lane may have, each for `ms`, `rounds` times. */
function work(door: LaneDoor, clock: { at: number }, ms: number, rounds = 20): void {
  for (let i = 0; i < rounds; i++) {
    const taken = fill(door);
    clock.at += ms;
    for (let k = 0; k < taken; k++) door.leave(clock.at - ms);
  }
}

test('heavy work keeps to a quarter of the places while light work comes, and only then', () => {
  const { clock, lane } = setUp(9);
  const [heavy, light] = [lane('a'), lane('b')];
  work(heavy, clock, 1_000);
  expect(light.tryEnter()).toBe(true);
  light.leave(clock.at);
  expect(fill(heavy)).toBe(2);
  clock.at += 500;
  expect(light.tryEnter()).toBe(true);
  light.leave(clock.at);
  clock.at += 999;
  expect(fill(heavy)).toBe(0);
  clock.at += 1;
  expect(fill(heavy)).toBe(5);
});

test('heavy work that waits beside free places gets them when light work no longer comes', async () => {
  jest.useFakeTimers();
  const clock = { at: 0 };
  const options = { waitMs: 5_000, maxWaiting: 9, now: () => clock.at, processors: 2 };
  const slots = new FairSlots({ capacity: 9, ...options });
  const [heavy, light] = [slots.lane('a'), slots.lane('b')];
  work(heavy, clock, 1_000);
  expect(light.tryEnter()).toBe(true);
  light.leave(clock.at);
  expect(fill(heavy)).toBe(1);
  const got: string[] = [];
  for (const name of ['one', 'two']) wait(heavy, name, got);
  clock.at += 999;
  await jest.advanceTimersByTimeAsync(999);
  expect(got).toEqual([]);
  clock.at += 1;
  await jest.advanceTimersByTimeAsync(1);
  expect(got).toEqual(['one', 'two']);
  jest.useRealTimers();
});

test('where there are few processors, heavy work leaves one of them to light work', () => {
  const { clock, lane } = setUp(9, 100, 2);
  const [heavy, light] = [lane('a'), lane('b')];
  work(heavy, clock, 1_000);
  expect(light.tryEnter()).toBe(true);
  light.leave(clock.at);
  expect(fill(heavy)).toBe(1);
});

test('work is as heavy with few of its kind at once as with many', () => {
  const { clock, lane } = setUp(9);
  const [heavy, light] = [lane('a'), lane('b')];
  // seven at once take 140 ms each, two at once 40
  work(heavy, clock, 140);
  for (let i = 0; i < 30; i++) {
    expect(light.tryEnter()).toBe(true);
    light.leave(clock.at);
    expect(fill(heavy)).toBe(2);
    clock.at += 40;
    for (let k = 0; k < 2; k++) heavy.leave(clock.at - 40);
  }
  const quick = lane('c');
  work(quick, clock, 14);
  expect(light.tryEnter()).toBe(true);
  expect(fill(quick)).toBeGreaterThan(2);
});

test('a wait ends when its time is over, its request is, or as many wait as may', async () => {
  jest.useFakeTimers();
  try {
    const { slots, lane } = setUp(1, 3);
    const door = lane('a');
    door.tryEnter();
    const gone = new AbortController();
    const got: string[] = [];
    wait(door, 'late', got);
    wait(door, 'gone', got, gone.signal);
    wait(door, 'aborted', got, AbortSignal.abort(new Error('over')));
    wait(door, 'third', got);
    wait(door, 'fourth', got);
    gone.abort(new Error('left'));
    await jest.advanceTimersByTimeAsync(WAIT_MS);
    expect(got).toEqual([
      'aborted: over',
      'fourth: no place (full)',
      'gone: left',
      'late: no place (late)',
      'third: no place (late)',
    ]);
    wait(door, 'told', got);
    slots.refuse(new Error('nobody answers'));
    await jest.advanceTimersByTimeAsync(0);
    expect(got.at(-1)).toBe('told: nobody answers');
    door.leave(0);
    expect(door.tryEnter()).toBe(true);
  } finally {
    jest.useRealTimers();
  }
});
