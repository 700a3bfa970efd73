import type { Command } from '../resp/resp-encoder.js';
import { emulateCopy } from './copy.js';
import type { Emulate, Emulation } from './emulation.js';
import { emulateScan } from './scan.js';
import { scriptEmulations } from './scripts.js';
import { emulateXtrim } from './xtrim.js';
import { emulateZrange } from './zrange.js';

/** Behaviour of the hosted product that clients rely on and that Redis lacks. */
export interface Emulations {
  /**
   * What to send instead of `command`; `undefined` for nearly every one. What the caller may run is decided by the
   * command as it was sent.
   * @param name the command's name in upper case
   */
  readonly emulationOf: (name: string, command: Command) => Emulation | undefined;
  /** Names in upper case; every other command goes to Redis as it is. */
  readonly names: ReadonlySet<string>;
}

/** They hold digests of scripts, which are facts of the texts alone: databases can share them, processes need not. */
export function createEmulations(): Emulations {
  const byName = new Map<string, Emulate>([
    ['COPY', emulateCopy],
    ['SCAN', emulateScan],
    ['XTRIM', emulateXtrim],
    ['ZRANGE', emulateZrange],
    ...scriptEmulations(),
  ]);
  return {
    emulationOf: (name, command) => byName.get(name)?.(command),
    names: new Set(byName.keys()),
  };
}
