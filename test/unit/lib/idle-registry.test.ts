import { type CloseReason, IdleRegistry } from '../../../src/lib/idle-registry.js';

function setUp(idleMs = 1_000) {
  const closed: [string, CloseReason][] = [];
  let made = 0;
  const registry = new IdleRegistry<string>({
    idleMs,
    close: async (value, reason) => {
      closed.push([value, reason]);
    },
  });
  const create = async () => `value ${++made}`;
  return { registry, create, closed };
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('a value is made once, shared, and closed when idle for its time', async () => {
  const { registry, create, closed } = setUp();
  const [first, second] = await Promise.all([registry.hold('k', create), registry.hold('k', create)]);
  expect([first.value, second.value]).toEqual(['value 1', 'value 1']);
  first.release();
  first.release();
  await jest.advanceTimersByTimeAsync(10_000);
  expect(closed).toEqual([]);
  second.release();
  await jest.advanceTimersByTimeAsync(999);
  expect(closed).toEqual([]);
  await jest.advanceTimersByTimeAsync(1);
  expect(closed).toEqual([['value 1', 'idle']]);
  expect(registry.size).toBe(0);
});

test('use begins the idle time anew', async () => {
  const { registry, create, closed } = setUp();
  for (let i = 0; i < 5; i++) {
    (await registry.hold('k', create)).release();
    await jest.advanceTimersByTimeAsync(900);
  }
  expect(closed).toEqual([]);
  expect(registry.values()).toEqual(['value 1']);
});

test('a key is used again only when its earlier value is closed', async () => {
  let end: () => void = () => {};
  const order: string[] = [];
  const registry = new IdleRegistry<string>({
    idleMs: 1_000,
    close: async (value) => {
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      order.push(`${value} closed`);
    },
  });
  await registry.hold('k', async () => 'a');
  const closing = registry.close('k');
  const next = registry.hold('k', async () => {
    order.push('b made');
    return 'b';
  });
  await jest.advanceTimersByTimeAsync(1);
  expect(order).toEqual([]);
  end();
  expect(await closing).toBe(true);
  expect((await next).value).toBe('b');
  expect(order).toEqual(['a closed', 'b made']);
});

test('what could not be made leaves nothing behind, and can be tried again', async () => {
  const { registry, create } = setUp();
  const failing = [0, 1].map(() => registry.hold('k', async () => Promise.reject(new Error('no'))));
  for (const hold of failing) await expect(hold).rejects.toThrow('no');
  expect(registry.size).toBe(0);
  expect((await registry.hold('k', create)).value).toBe('value 1');
});

test('closing what is not there', async () => {
  const { registry } = setUp();
  expect(await registry.close('k')).toBe(false);
});

test('the stop closes everything, also what is held, and refuses more', async () => {
  const { registry, create, closed } = setUp();
  await registry.hold('a', create);
  (await registry.hold('b', create)).release();
  await registry.closeAll();
  expect(closed).toEqual([
    ['value 1', 'stop'],
    ['value 2', 'stop'],
  ]);
  await expect(registry.hold('c', create)).rejects.toThrow('closed');
  expect(jest.getTimerCount()).toBe(0);
});
