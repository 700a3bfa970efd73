import { createHash, createHmac } from 'node:crypto';
import type { Logger } from '../../../lib/logger.js';
import { isLasting } from '../resp/passing.js';
import { fields, items } from '../resp/reply-fields.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';

export interface ConfinementOptions {
  /** As whom the configuration logs in. */
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Lower-case names of what is refused: `command` or `command|subcommand`. */
  readonly denied: readonly string[];
  readonly log: Logger;
}

/** Sends commands and resolves to their replies. */
type Send = (commands: readonly Command[]) => Promise<RespValue[]>;

/**
 * With them a denial could be lifted again, or the password be guessed of the user who has no denials: they show its hash,
 * without salt, and from the password the tokens of a Redis' other databases may be derived.
 */
const LIFTING = ['acl|setuser', 'acl|deluser', 'acl|load', 'acl|save', 'acl|list', 'acl|getuser'];

/**
 * What a database refuses is refused by Redis itself, within scripts and functions too: every connection goes on as a user
 * of Redis' access list that Portico makes, which may do what the configured one may but for the denials. Where Redis does
 * not let Portico make it (`ACL GETUSER`, `ACL SETUSER`; Redis 7 or Valkey), the denials hold for commands alone.
 */
export class Confinement {
  /** Arguments of AUTH for the confined user. */
  readonly login: Command;
  private readonly denied: readonly string[];
  private told: string | undefined;

  constructor(private readonly options: ConfinementOptions) {
    const { username = 'default', password, denied } = options;
    this.denied = [...new Set([...denied, ...LIFTING])].sort();
    const digest = createHash('sha256')
      .update(JSON.stringify([username, this.denied]))
      .digest('hex');
    const name = `portico-${digest.slice(0, 16)}`;
    // the same on every gateway; without a password Redis is open to all anyway
    const secret =
      password === undefined ? 'nopass' : createHmac('sha256', password).update(name).digest('hex');
    this.login = [name, secret];
  }

  /**
   * Makes the confined user the one of a connection.
   * @returns whether it is, and why that has to be tried again
   * @throws Error when Redis made the user and does not let it in
   */
  async enter(send: Send): Promise<{ readonly isEntered: boolean; readonly delay?: string }> {
    const { username = 'default', password } = this.options;
    const names = this.denied.map((name) => name.split('|', 1)[0] as string);
    const [user, facts] = await send([
      ['ACL', 'GETUSER', username],
      ['COMMAND', 'INFO', ...names],
    ]);
    if (user instanceof RespError) return this.refused(user);
    const base = fields(user);
    // an older server lists them, and knows no denial of a subcommand
    if (!(base.get('keys') instanceof Buffer)) return this.refused(new RespError('ERR older than Redis 7'));
    // Redis refuses a rule about a command that it does not have
    const known = this.denied.filter((_, i) => !Array.isArray(facts) || Array.isArray(facts[i]));
    const [name, secret] = this.login as [string, string];
    const rules = ['reset', 'on', password === undefined ? 'nopass' : `>${secret}`, ...confined(base, known)];
    const [made, entered] = await send([
      ['ACL', 'SETUSER', name, ...rules],
      ['AUTH', name, secret],
    ]);
    if (made instanceof RespError) return this.refused(made);
    if (entered instanceof RespError) throw new Error(entered.text);
    this.tell('Redis itself refuses what this database denies, within scripts too', 'info');
    return { isEntered: true };
  }

  private refused(error: RespError): { readonly isEntered: false; readonly delay?: string } {
    if (!isLasting(error)) return { isEntered: false, delay: error.text };
    const reason = error.text.split(' ', 1)[0];
    this.tell(
      `what this database denies is no boundary: scripts can run it, because Redis does not let Portico make a user for it (${reason}); needed are ACL GETUSER and ACL SETUSER, Redis 7 or Valkey`,
      'warn',
    );
    return { isEntered: false };
  }

  private tell(message: string, level: 'info' | 'warn'): void {
    if (this.told === message) return;
    this.told = message;
    this.options.log[level]({ denied: this.denied }, message);
  }
}

/** The rules of a user by the reply of ACL GETUSER, with denials behind all that allows. */
function confined(facts: ReadonlyMap<string, RespValue>, denied: readonly string[]): string[] {
  const denials = denied.map((name) => `-${name}`);
  const selectors = items(facts.get('selectors')).map((selector) => {
    const own = fields(selector);
    return `(${[...patterns(own), ...words(own.get('commands')), ...denials].join(' ')})`;
  });
  return [...patterns(facts), ...words(facts.get('commands')), ...denials, ...selectors];
}

function patterns(facts: ReadonlyMap<string, RespValue>): string[] {
  return [...words(facts.get('keys')), ...words(facts.get('channels'))];
}

function words(value: RespValue | undefined): string[] {
  return value instanceof Buffer ? value.toString().split(' ').filter(Boolean) : [];
}
