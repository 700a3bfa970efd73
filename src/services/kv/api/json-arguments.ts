import { isUtf8 } from 'node:buffer';
import { HttpError } from '../../../http/errors.js';
import { wholly } from '../../../lib/slices.js';
import type { Command } from '../resp/resp-encoder.js';
import { liftLargeStrings } from './lift-strings.js';

/**
 * A command from a JSON array of strings, numbers and booleans. A number is sent as it is written in the body, so
 * that 64-bit integers and `1.0` stay what they are; `true` and `false` are sent as these words.
 * @throws HttpError `invalid_request`
 */
export function commandOfJson(body: Buffer): Command {
  const { text, value, lifted } = parse(body);
  if (!Array.isArray(value)) throw invalid('expected a JSON array: a command and its arguments');
  const command = isTexts(value) ? value : convert(value, numberLiterals(text));
  return lifted === undefined ? command : withLifted(command, lifted);
}

/**
 * Commands from a JSON array of arrays, each as in `commandOfJson`.
 * @throws HttpError `invalid_request`, before anything of the body is used
 */
export function commandsOfJson(body: Buffer): Command[] {
  const { text, value, lifted } = parse(body);
  if (!Array.isArray(value) || !value.every((row) => Array.isArray(row)))
    throw invalid('expected a JSON array of arrays, each a command and its arguments');
  if (value.length === 0) throw invalid('empty pipeline request');
  const commands = value.every(isTexts) ? value : convertAll(value, numberLiterals(text));
  return lifted === undefined ? commands : commands.map((command) => withLifted(command, lifted));
}

export function invalid(message: string): HttpError {
  return new HttpError('invalid_request', `ERR ${message}`);
}

interface Parsed {
  /** What was parsed. */
  readonly text: string;
  readonly value: unknown;
  /** Strings that stand in it by their names only. */
  readonly lifted: ReadonlyMap<string, Buffer> | undefined;
}

function parse(body: Buffer): Parsed {
  if (body.length === 0) throw invalid('empty body: expected a JSON array');
  if (!isUtf8(body)) throw invalid('failed to parse command: the body is not valid UTF-8');
  const { rest, lifted } = wholly(liftLargeStrings(body));
  const text = rest.toString('utf8');
  try {
    return { text, value: JSON.parse(text), lifted: lifted.size === 0 ? undefined : lifted };
  } catch {
    throw invalid('failed to parse command: the body is not valid JSON');
  }
}

export function isTexts(row: readonly unknown[]): row is readonly string[] {
  for (let i = 0; i < row.length; i++) {
    if (typeof row[i] !== 'string') return false;
  }
  return true;
}

function withLifted(command: Command, lifted: ReadonlyMap<string, Buffer>): Command {
  return command.map((argument) => lifted.get(argument as string) ?? argument);
}

function convertAll(rows: readonly unknown[][], literals: Iterator<string, undefined>): Command[] {
  return rows.map((row) => convert(row, literals));
}

function convert(row: readonly unknown[], literals: Iterator<string, undefined>): Command {
  return row.map((argument) => argumentOf(argument, literals));
}

/** @param literals of the numbers to come @throws HttpError `invalid_request` */
export function argumentOf(argument: unknown, literals: Iterator<string, undefined>): string {
  switch (typeof argument) {
    case 'string':
      return argument;
    case 'number':
      return literals.next().value ?? String(argument);
    case 'boolean':
      return String(argument);
    default:
      throw invalid(
        argument === null
          ? 'null args are not supported'
          : 'unsupported arg type: expected a string, a number or a boolean',
      );
  }
}

/**
 * The numbers of a valid JSON text as they are written, in order: `JSON.parse` rounds integers above 2^53 and, on
 * Node 20, gives no access to the source text.
 */
export function* numberLiterals(text: string): Generator<string, undefined> {
  const interesting = /["\d-]/g;
  const number = /[-+.\deE]+/y;
  for (let found = interesting.exec(text); found !== null; found = interesting.exec(text)) {
    if (found[0] === '"') {
      interesting.lastIndex = endOfString(text, found.index);
    } else {
      number.lastIndex = found.index;
      const literal = number.exec(text)?.[0] ?? '';
      interesting.lastIndex = found.index + literal.length;
      yield literal;
    }
  }
  return undefined;
}

/** Index after the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    if (at < 0) return text.length;
    let backslashes = 0;
    while (text[at - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
}
