import type { RespValue } from '../resp-decoder.js';
import type { Command } from '../resp-encoder.js';

/** Further commands, all of which only read, that an answer needs; one reply each. */
export class FollowUp {
  constructor(
    readonly commands: readonly Command[],
    readonly finish: (replies: readonly RespValue[]) => RespValue,
  ) {}
}

export function isFollowUp(answer: RespValue | FollowUp): answer is FollowUp {
  return answer instanceof FollowUp;
}

/** What is sent in a command's place, and what becomes of its reply. */
export interface Emulation {
  readonly command: Command;
  readonly finish: (reply: RespValue) => RespValue | FollowUp;
}

export interface Emulations {
  /** Upper-case names of commands of which some are emulated. */
  readonly names: ReadonlySet<string>;
  /** `undefined` when the command is sent as it is. @param name in upper case */
  emulationOf(name: string, command: Command): Emulation | undefined;
}
