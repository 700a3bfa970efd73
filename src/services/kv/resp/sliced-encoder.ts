import { inSlices } from '../../../lib/slices.js';
import type { Argument, Command, Payload } from './resp-encoder.js';

/** Characters of text that become bytes at a time, and arguments between two places to rest. */
const PIECE = 64 * 1024;
const STEP = 500;

/** `encodeCommands` for many, or long ones, in slices: as bytes, in pieces of the usual size of a write. */
export function encodeInSlices(commands: readonly Command[]): Promise<Payload> {
  return inSlices(encode(commands));
}

function* encode(commands: readonly Command[]): Generator<void, Payload> {
  const pieces: Argument[] = [];
  let text = '';
  let count = 0;
  const flush = () => {
    pieces.push(Buffer.from(text));
    text = '';
  };
  for (const command of commands) {
    text += `*${command.length}\r\n`;
    for (const argument of command) {
      if (typeof argument === 'string') {
        text += `$${Buffer.byteLength(argument)}\r\n${argument}\r\n`;
      } else {
        text += `$${argument.length}\r\n`;
        flush();
        pieces.push(argument);
        text = '\r\n';
      }
      if (text.length > PIECE) flush();
      if (++count % STEP === 0) yield;
    }
  }
  flush();
  return pieces;
}
