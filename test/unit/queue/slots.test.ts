import { Slots } from '../../../src/services/queue/delivery/slots.js';

it('lets in as many as there are slots, and the next one in turn when one leaves', async () => {
  const slots = new Slots(2);
  const order: number[] = [];
  const enter = async (who: number) => {
    if (await slots.enter()) order.push(who);
  };
  const first = [enter(1), enter(2)];
  const later = [enter(3), enter(4)];
  await Promise.all(first);
  expect(order).toEqual([1, 2]);
  slots.leave();
  await later[0];
  expect(order).toEqual([1, 2, 3]);
  slots.leave();
  await later[1];
  expect(order).toEqual([1, 2, 3, 4]);
});

it('gives a free slot at once when nobody waits', async () => {
  const slots = new Slots(1);
  expect(await slots.enter()).toBe(true);
  slots.leave();
  expect(await slots.enter()).toBe(true);
});

it('turns all away once it is closed, those too that wait', async () => {
  const slots = new Slots(1);
  await slots.enter();
  const waiting = slots.enter();
  slots.close();
  expect(await waiting).toBe(false);
  slots.leave();
  expect(await slots.enter()).toBe(false);
});
