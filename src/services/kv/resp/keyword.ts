import type { Argument, Command } from './resp-encoder.js';

/** Longer than any name of a command, subcommand or option. */
const LONGEST = 64;

/** The argument at `index` as upper-case text, for comparison with a keyword; empty when there is none or it is no keyword. */
export function keyword(command: Command, index: number): string {
  const argument = command[index];
  if (argument === undefined) return '';
  const text = asRedisCompares(argument);
  return text.length > LONGEST ? '' : text.toUpperCase();
}

/** An argument up to its first NUL: Redis compares options, subcommands and patterns as C strings, which end there. */
export function asRedisCompares(argument: Argument): string {
  const end = argument.indexOf('\0');
  if (typeof argument === 'string') return end < 0 ? argument : argument.slice(0, end);
  return argument.toString('latin1', 0, end < 0 ? argument.length : end);
}
