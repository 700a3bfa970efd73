import { HttpError } from '../../../http/errors.js';
import { keyword } from '../resp/keyword.js';
import type { Command } from '../resp/resp-encoder.js';
import { type Audited, auditedOf } from './audited.js';
import type { CommandCounter, CommandCounters } from './command-counters.js';
import type { CommandFacts, CommandTable } from './command-table.js';
import { type Inspect, refusalOf } from './refusals.js';

/** What a request's token may do. */
export type Access = 'full' | 'read';

/**
 * Connections of a database by what they carry: commands with short replies, reads whose replies may be huge, and
 * scripts. A huge reply or a slow script holds up its own kind only.
 */
export type Lane = 'main' | 'bulk' | 'scripts';

const LANES: readonly Lane[] = ['main', 'bulk', 'scripts'];

/** The lane for commands that must stay in order: that of the slowest among them. */
export function laneOfRows(rows: readonly Row[]): Lane {
  let slowest = 0;
  for (const { rule } of rows) slowest = Math.max(slowest, LANES.indexOf(rule.lane));
  return LANES[slowest] as Lane;
}

/** What Portico knows of a command name. */
export interface Rule {
  /** In upper case. */
  readonly name: string;
  readonly inspect: Inspect | undefined;
  readonly facts: CommandFacts | undefined;
  readonly lane: Lane;
  /** It changes nothing, by the server's word. */
  readonly reads: boolean;
  /** Sent as it is and answered by its one reply; else see `special-rows.ts`. */
  readonly plain: boolean;
  readonly counter: CommandCounter;
  /** Whether a call belongs into the audit log; `undefined` where none does. */
  readonly audited: Audited | undefined;
}

/** A command that may be sent. */
export interface Row {
  readonly command: Command;
  readonly rule: Rule;
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

export interface CommandRulesOptions {
  readonly table: CommandTable;
  /** The server has said which commands it has, if only that it does not say so; else that is still to come. */
  readonly isTold: boolean;
  readonly counters: CommandCounters;
  /** Upper-case names that Portico answers in its own way, at least for some arguments. */
  readonly special: ReadonlySet<string>;
  /** Upper-case names that are refused beside Portico's own list, and why. */
  readonly denied: ReadonlyMap<string, string>;
}

/**
 * Which commands may be sent, and for whom. The decision comes from Portico's list and from the server's own command
 * table, so that commands of newer servers and of modules need no release.
 */
export class CommandRules {
  private readonly rules = new Map<string, Rule>();

  constructor(private readonly options: CommandRulesOptions) {}

  /** Commands that the server has told. */
  get size(): number {
    return this.options.table.size;
  }

  get isTold(): boolean {
    return this.options.isTold;
  }

  /**
   * The command with its rule, or the error text, class word first, of one that must not be sent.
   * @throws HttpError `backend_unavailable` for the read-only token while it is not known what reads
   */
  admit(command: Command, access: Access): Row | string {
    const first = command[0];
    if (first === undefined || first.length === 0) return 'ERR empty command';
    if (command.length > MOST_ARGUMENTS) return `ERR more than ${MOST_ARGUMENTS} arguments`;
    // Redis compares names up to a NUL: one behind a refused name would hide it in one of some hundred spellings
    if (first.includes('\0')) return 'ERR unknown command: its name holds a NUL';
    const rule = this.rule(typeof first === 'string' ? first : first.toString('latin1'));
    const reason = rule.inspect?.(command);
    if (reason !== undefined) {
      rule.counter.refused += 1;
      return `ERR Command '${rule.name}' is not available over HTTP: ${reason}`;
    }
    if (access === 'read' && !this.isTold) throw commandsUnknown();
    if (access === 'read' && !isReadable(rule, command)) {
      rule.counter.refused += 1;
      return `NOPERM this user has no permissions to run the '${rule.name.toLowerCase()}' command`;
    }
    return { command, rule };
  }

  /** A command of Portico's own, which may do what it likes. @param command with its name as text */
  own(command: Command): Row {
    return { command, rule: this.rule(String(command[0])) };
  }

  private rule(spelling: string): Rule {
    const known = this.rules.get(spelling);
    if (known !== undefined) return known;
    if (spelling.length > LONGEST_NAME) return this.make('UNKNOWN', undefined);
    const name = spelling.toUpperCase();
    const facts = this.options.table.get(name.toLowerCase());
    const rule = this.make(name, facts);
    if (facts !== undefined && this.rules.size < KEPT_SPELLINGS) this.rules.set(spelling, rule);
    return rule;
  }

  private make(name: string, facts: CommandFacts | undefined): Rule {
    const { denied, special, counters } = this.options;
    const reason = denied.get(name);
    return {
      name,
      inspect: reason === undefined ? refusalOf(name, facts) : () => reason,
      facts,
      lane: laneOf(facts),
      reads: facts?.flags.has('readonly') === true,
      plain: !special.has(name),
      counter: counters.of(name, facts !== undefined),
      audited: auditedOf(name),
    };
  }
}

/** Scripts are told from SCRIPT and FUNCTION, which must pass while one runs (SCRIPT KILL), by their keys. */
function laneOf(facts: CommandFacts | undefined): Lane {
  if (facts === undefined) return 'main';
  const { flags, categories } = facts;
  if (categories.has('@scripting') && flags.has('movablekeys')) return 'scripts';
  return flags.has('readonly') && !flags.has('fast') ? 'bulk' : 'main';
}

function commandsUnknown(): HttpError {
  return new HttpError(
    'backend_unavailable',
    'Redis has not told its commands yet, without which the read-only token can run none; nothing was executed',
  );
}

/** Of the subcommand, where the server tells of one. */
export function exactFacts(facts: CommandFacts, command: Command): CommandFacts {
  if (facts.subcommands.size === 0) return facts;
  return facts.subcommands.get(keyword(command, 1).toLowerCase()) ?? facts;
}

function isReadable({ name, facts }: Rule, command: Command): boolean {
  if (facts === undefined || NEVER_READABLE.has(name)) return false;
  if (ALSO_READABLE.has(name)) return true;
  const exact = exactFacts(facts, command);
  return exact.categories.has('@read') && !exact.categories.has('@dangerous');
}
