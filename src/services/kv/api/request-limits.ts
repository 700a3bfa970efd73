import type { Command } from '../resp/resp-encoder.js';
import type { JsonExtent } from './json-extent.js';

export interface RequestLimits {
  /** Bytes of one command: its name and arguments. */
  readonly command: number;
  /** Commands of one pipeline or transaction. */
  readonly pipeline: number;
}

/** Why a command is too large, without its class word; `undefined` when it is not. */
export function tooLargeCommand(command: Command, { command: limit }: RequestLimits): string | undefined {
  let least = 0;
  for (const argument of command) least += argument.length;
  // a character is three bytes at most, and most commands are small
  if (least * 3 <= limit) return undefined;
  const size = command.reduce((sum, argument) => sum + Buffer.byteLength(argument), 0);
  if (size <= limit) return undefined;
  return `max request size exceeded. Limit: ${limit} bytes, Actual: ${size} bytes`;
}

export function tooLongPipeline(length: number, { pipeline: limit }: RequestLimits): string | undefined {
  if (length <= limit) return undefined;
  return `ERR max pipeline length exceeded. Limit: ${limit} commands, Actual: ${length} commands`;
}

/** Arguments of all commands of one request: ten of each of a hundred thousand commands, or all that Redis takes in one. */
export const MOST_ARGUMENTS = 1024 * 1024;

/** Why a body that holds so much is not parsed. */
export function refusedExtent(
  { arrays, commas }: JsonExtent,
  { pipeline }: RequestLimits,
): string | undefined {
  if (arrays - 1 > pipeline) return tooLongPipeline(arrays - 1, { command: 0, pipeline });
  return commas < MOST_ARGUMENTS ? undefined : `ERR more than ${MOST_ARGUMENTS} arguments in one request`;
}
