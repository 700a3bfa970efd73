/**
 * How much a body may hold. JavaScript needs up to 100 bytes for a string or object of three: the bounds keep what is parsed
 * within 64 MiB and four times the body's size.
 */
export const JSON_BOUNDS = {
  /** Arrays and objects within each other: far more than anything reasonable, far less than recursion takes. */
  depth: 256,
  /** Strings, arrays and objects in all, but for keys. */
  things: 500_000,
  /** Values in all. */
  values: 4_000_000,
  /** Different keys in all. */
  keys: 65_536,
} as const;

export interface JsonBounds {
  readonly depth: number;
  readonly things: number;
  readonly values: number;
  readonly keys: number;
}

/** Why a text is no JSON value that is taken. */
export class JsonProblem extends Error {
  /** @param at about where in bytes, of a text that is no JSON: JSON.parse does not always tell */
  constructor(
    message: string,
    readonly at?: number,
  ) {
    super(message);
  }
}

/** @param at where the piece begins that is no JSON @param message of JSON.parse, about the piece in a bracket of its own */
export function notJson(at: number, message = ''): JsonProblem {
  const inPiece = Number(/position (\d+)/.exec(message)?.[1] ?? 1);
  return new JsonProblem('not valid JSON', at + Math.max(0, inPiece - 1));
}
