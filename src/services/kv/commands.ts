import type { CommandFacts, CommandTable } from './command-table.js';
import { keyword } from './keyword.js';
import { type Inspect, refusalOf } from './refusals.js';
import type { Command } from './resp-encoder.js';

/** What a request's token may do. */
export type Access = 'full' | 'read';

interface Rule {
  readonly name: string;
  readonly inspect: Inspect | undefined;
  readonly facts: CommandFacts | undefined;
}

/** A name longer than that is no command of any server; Redis may say so itself. */
const LONGEST_NAME = 64;
/** Spellings kept with their rule: some hundred commands, each in a few spellings. */
const KEPT_SPELLINGS = 2_000;
/** More arguments make Redis 6 and older close the connection, for everybody on it. */
const MOST_ARGUMENTS = 1024 * 1024;

/** Harmless, and not in the category @read. */
const ALSO_READABLE = new Set(['PING', 'ECHO', 'TIME']);
/** In @read and not in @dangerous, but they walk the whole keyspace. */
const NEVER_READABLE = new Set(['SCAN', 'KEYS', 'RANDOMKEY']);

/**
 * Which commands may be sent over the shared connection, and for whom. The decision comes from Portico's list and
 * from the server's own command table, so that commands of newer servers and of modules need no release.
 */
export class CommandRules {
  private readonly rules = new Map<string, Rule>();

  constructor(private readonly table: CommandTable) {}

  /** The error text for a command that must not be sent, class word first; `undefined` when it may be. */
  refusal(command: Command, access: Access): string | undefined {
    const first = command[0];
    if (first === undefined || first.length === 0) return 'ERR empty command';
    if (command.length > MOST_ARGUMENTS) return `ERR more than ${MOST_ARGUMENTS} arguments`;
    // Redis compares names up to a NUL: one behind a refused name would hide it in one of some hundred spellings
    if (first.includes('\0')) return 'ERR unknown command: its name holds a NUL';
    const rule = this.rule(typeof first === 'string' ? first : first.toString('latin1'));
    const reason = rule.inspect?.(command);
    if (reason !== undefined) return `ERR Command '${rule.name}' is not available over HTTP: ${reason}`;
    if (access === 'read' && !isReadable(rule, command))
      return `NOPERM this user has no permissions to run the '${rule.name.toLowerCase()}' command`;
    return undefined;
  }

  private rule(spelling: string): Rule {
    const known = this.rules.get(spelling);
    if (known !== undefined) return known;
    if (spelling.length > LONGEST_NAME) return { name: 'unknown', inspect: undefined, facts: undefined };
    const name = spelling.toUpperCase();
    const facts = this.table.get(name.toLowerCase());
    const rule: Rule = { name, inspect: refusalOf(name, facts), facts };
    if (facts !== undefined && this.rules.size < KEPT_SPELLINGS) this.rules.set(spelling, rule);
    return rule;
  }
}

function isReadable({ name, facts }: Rule, command: Command): boolean {
  if (facts === undefined || NEVER_READABLE.has(name)) return false;
  if (ALSO_READABLE.has(name)) return true;
  const exact = facts.subcommands.get(keyword(command, 1).toLowerCase()) ?? facts;
  return exact.categories.has('@read') && !exact.categories.has('@dangerous');
}
