import type { Emulations } from './emulation.js';

export function createEmulations(): Emulations {
  return { names: new Set(), emulationOf: () => undefined };
}
