import type { Screen } from '../data/screen.js';

const found = import.meta.glob<{ screen: Screen }>('../screens/*/index.ts', { eager: true });

export const screens: readonly Screen[] = Object.values(found)
  .map(({ screen }) => screen)
  .sort((a, b) => a.order - b.order);
