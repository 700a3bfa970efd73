import { items, text } from '../resp/reply-fields.js';
import type { RespValue } from '../resp/resp-decoder.js';
import { type KeySpec, readKeySpecs } from './key-specs.js';

/** What the server says of a command (or of one subcommand) by `COMMAND`. */
export interface CommandFacts {
  readonly flags: ReadonlySet<string>;
  /** ACL categories, such as `@read`; Redis 6 and later. */
  readonly categories: ReadonlySet<string>;
  /** Where its keys stand. */
  readonly keys: readonly KeySpec[];
  /** By name in lower case. Redis 7 and later; empty where the command has none. */
  readonly subcommands: ReadonlyMap<string, CommandFacts>;
}

/** The server's commands by name in lower case, modules included. */
export type CommandTable = ReadonlyMap<string, CommandFacts>;

// Positions in an entry of the reply of COMMAND: https://redis.io/docs/latest/commands/command/
const NAME = 0;
const FLAGS = 2;
const CATEGORIES = 6;
const SUBCOMMANDS = 9;

/** Reads the reply of `COMMAND`; what has another shape, an error reply included, makes no entries. */
export function readCommandTable(reply: RespValue | undefined): CommandTable {
  const table = new Map<string, CommandFacts>();
  for (const entry of items(reply)) {
    const fields = items(entry);
    const listed = text(fields[NAME]).toLowerCase();
    // a subcommand is listed as "container|name"
    const name = listed.slice(listed.indexOf('|') + 1);
    table.set(name, {
      flags: words(fields[FLAGS]),
      categories: words(fields[CATEGORIES]),
      keys: readKeySpecs(name, fields),
      subcommands: readCommandTable(fields[SUBCOMMANDS]),
    });
  }
  return table;
}

function words(value: RespValue | undefined): ReadonlySet<string> {
  return new Set(items(value).map(text));
}
