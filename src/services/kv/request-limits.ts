import { jsonExtent } from './json-extent.js';
import type { Command } from './resp-encoder.js';

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

/** Bodies up to this size hold too little to need a look before they are parsed. */
const SMALL_BODY = 64 * 1024;
/** Arguments of all commands of one request; a few of a hundred thousand commands, or all that Redis takes in one. */
const MOST_ARGUMENTS = 4 * 1024 * 1024;

/** Why a body is not parsed: it holds more commands or arguments than may be. */
export function tooManyElements(body: Buffer, { pipeline }: RequestLimits): string | undefined {
  if (body.length <= SMALL_BODY) return undefined;
  const { arrays, commas } = jsonExtent(body);
  if (arrays - 1 > pipeline) return tooLongPipeline(arrays - 1, { command: 0, pipeline });
  return commas < MOST_ARGUMENTS ? undefined : `ERR more than ${MOST_ARGUMENTS} arguments in one request`;
}
