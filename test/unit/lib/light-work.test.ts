import { FairSlots } from '../../../src/lib/fair-slots.js';
import { LightWork } from '../../../src/lib/light-work.js';

test('heavy work makes room for light work that takes no place of its own', () => {
  const clock = { at: 0 };
  const light = new LightWork();
  const options = { waitMs: 1_000, maxWaiting: 10, processors: 2, now: () => clock.at, light };
  const heavy = new FairSlots({ capacity: 9, ...options }).lane('a');
  const fill = () => {
    let taken = 0;
    while (heavy.tryEnter()) taken++;
    return taken;
  };
  for (let i = 0; i < 20; i++) {
    const taken = fill();
    clock.at += 1_000;
    for (let k = 0; k < taken; k++) heavy.leave(clock.at - 1_000);
  }
  expect(fill()).toBe(7);
  for (let k = 0; k < 7; k++) heavy.leave(clock.at);
  light.came(clock.at);
  expect(fill()).toBeLessThan(7);
  clock.at += 1_000;
  expect(fill()).toBeGreaterThan(0);
});
