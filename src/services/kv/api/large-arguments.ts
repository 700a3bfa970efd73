import { isUtf8 } from 'node:buffer';
import { HttpError } from '../../../http/errors.js';
import { JSON_BOUNDS, JsonProblem } from '../../../lib/json/json-bounds.js';
import { parseInPieces } from '../../../lib/json/sliced-json.js';
import { inSlices, sliced } from '../../../lib/slices.js';
import type { Argument, Command } from '../resp/resp-encoder.js';
import { argumentOf, invalid, isTexts, numberLiterals } from './json-arguments.js';
import { jsonExtent } from './json-extent.js';
import { type LiftedStrings, liftLargeStrings } from './lift-strings.js';
import { MOST_ARGUMENTS, type RequestLimits, refusedExtent } from './request-limits.js';

/** An argument is a string, so there may be more of them than in other bodies. */
const BOUNDS = { ...JSON_BOUNDS, things: 2 * MOST_ARGUMENTS, values: 2 * MOST_ARGUMENTS };
/** Arguments between two places to rest. */
const STEP = 1_000;

/** `commandOfJson` for a large body, in slices; a promise where it takes more than one. @throws HttpError `invalid_request` */
export function largeCommandOfJson(body: Buffer, limits: RequestLimits): Command | Promise<Command> {
  return sliced(readCommand(body, limits));
}

/** `commandsOfJson` for a large body, in slices. @throws HttpError `invalid_request` */
export async function largeCommandsOfJson(body: Buffer, limits: RequestLimits): Promise<Command[]> {
  return inSlices(readCommands(body, limits));
}

function* readCommand(body: Buffer, limits: RequestLimits): Generator<void, Command> {
  const { value, lifted } = yield* parse(body, limits);
  if (!Array.isArray(value)) throw invalid('expected a JSON array: a command and its arguments');
  return yield* checkedCommand(value, lifted);
}

function* readCommands(body: Buffer, limits: RequestLimits): Generator<void, Command[]> {
  const { value, lifted } = yield* parse(body, limits);
  if (!Array.isArray(value)) throw notRows();
  if (value.length === 0) throw invalid('empty pipeline request');
  for (let i = 0; i < value.length; i++) {
    if (!Array.isArray(value[i])) throw notRows();
    value[i] = yield* checkedCommand(value[i], lifted);
    if (i % STEP === 0) yield;
  }
  return value;
}

const notRows = () => invalid('expected a JSON array of arrays, each a command and its arguments');

function* parse(
  body: Buffer,
  limits: RequestLimits,
): Generator<void, { value: unknown; lifted: LiftedStrings['lifted'] }> {
  if (!isUtf8(body)) throw invalid('failed to parse command: the body is not valid UTF-8');
  const { rest, lifted } = yield* liftLargeStrings(body);
  const refusal = refusedExtent(yield* jsonExtent(rest), limits);
  if (refusal !== undefined) throw new HttpError('invalid_request', refusal);
  try {
    return { value: yield* parseInPieces(rest, readMembers, BOUNDS), lifted };
  } catch (error) {
    if (!(error instanceof JsonProblem)) throw error;
    throw invalid(
      error.at === undefined
        ? `the body holds ${error.message}`
        : 'failed to parse command: the body is not valid JSON',
    );
  }
}

/** JSON.parse, but that numbers stay as they are written. */
function readMembers(text: string): readonly unknown[] {
  const values = JSON.parse(`[${text}]`) as unknown[];
  return values.every(holdsTexts) ? values : withLiterals(values, numberLiterals(text));
}

function holdsTexts(value: unknown): boolean {
  return typeof value === 'string' || (Array.isArray(value) && isTexts(value));
}

function withLiterals(values: readonly unknown[], literals: Iterator<string, undefined>): unknown[] {
  return values.map((value) =>
    Array.isArray(value) ? withLiterals(value, literals) : argumentOf(value, literals),
  );
}

/** @throws HttpError for what is no argument: an array or object that was larger than a piece, or a row within a command */
function* checkedCommand(
  values: readonly unknown[],
  lifted: LiftedStrings['lifted'],
): Generator<void, Command> {
  // a copy of a million arguments takes 10 MB
  const command = lifted.size === 0 ? (values as Argument[]) : new Array<Argument>(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value !== 'string')
      throw invalid('unsupported arg type: expected a string, a number or a boolean');
    if (lifted.size > 0) command[i] = lifted.get(value) ?? value;
    if (i % STEP === STEP - 1) yield;
  }
  return command;
}
