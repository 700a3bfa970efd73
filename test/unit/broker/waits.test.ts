import { withSecond } from '../../../src/services/broker/kafka/waits.js';

const never = () => new Promise<string>(() => {});
const fails = (text: string) => Promise.reject<string>(new Error(text));
const notAsked = () => Promise.reject<string>(new Error('asked'));

test('one that answers is the only one that is asked', async () => {
  expect(await withSecond(Promise.resolve('first'), 60_000, notAsked)).toBe('first');
});

test('one that fails, or is silent, is not the only one', async () => {
  expect(await withSecond(fails('lost'), 60_000, async () => 'second')).toBe('second');
  expect(await withSecond(never(), 1, async () => 'second')).toBe('second');
});

test('one that is only slow still counts', async () => {
  const slow = new Promise<string>((resolve) => setTimeout(resolve, 20, 'first'));
  expect(await withSecond(slow, 1, never)).toBe('first');
  const slowToo = new Promise<string>((resolve) => setTimeout(resolve, 20, 'first'));
  expect(await withSecond(slowToo, 1, () => fails('no other'))).toBe('first');
});

test('when both fail, the first one tells', async () => {
  await expect(withSecond(fails('first'), 1, () => fails('second'))).rejects.toThrow('first');
});
