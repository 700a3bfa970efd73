import type { RespValue } from '../resp/resp-decoder.js';
import type { Argument, Command } from '../resp/resp-encoder.js';

/** What is sent in a command's place, and what becomes of its reply. */
export interface Emulation {
  readonly command: Command;
  /** Makes the answer from the reply of `command`, or asks for what is missing. Inside MULTI: from its item of EXEC's reply. */
  readonly finish: (reply: RespValue) => RespValue | FollowUp;
}

/** Further commands: sent in one go, one reply each and in order. */
export interface FollowUp {
  readonly commands: readonly Command[];
  /** The answer where one request needs too many of them. */
  readonly otherwise: RespValue;
  readonly finish: (replies: readonly RespValue[]) => RespValue;
}

/** Reads a command and never changes it; `undefined` when it goes to Redis as it is. */
export type Emulate = (command: Command) => Emulation | undefined;

export function isFollowUp(answer: RespValue | FollowUp): answer is FollowUp {
  return typeof answer === 'object' && answer !== null && 'commands' in answer;
}

/** The command with another argument at `index`, its reply as it comes. */
export function withArgument(command: Command, index: number, argument: Argument): Emulation {
  return { command: command.with(index, argument), finish: unchanged };
}

export function unchanged(reply: RespValue): RespValue {
  return reply;
}
