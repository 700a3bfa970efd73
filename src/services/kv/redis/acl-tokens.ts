import type { RestTokens } from '../auth/rest-tokens.js';
import type { Row } from '../commands/commands.js';
import { keyword } from '../resp/keyword.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Argument } from '../resp/resp-encoder.js';
import type { AclUsers } from './acl-users.js';

/** `ACL RESTTOKEN user password` and `ACL GENTOKEN user [password]`, which no Redis knows. */
export class AclTokens {
  constructor(
    private readonly users: AclUsers,
    private readonly tokens: RestTokens,
  ) {}

  /** Whether Portico answers this row itself. */
  static answers({ rule, command }: Row): boolean {
    if (rule.name !== 'ACL') return false;
    const subcommand = keyword(command, 1);
    return subcommand === 'RESTTOKEN' || subcommand === 'GENTOKEN';
  }

  /** @throws HttpError `backend_unavailable` when Redis cannot be asked about a password */
  async answer({ command }: Row): Promise<RespValue> {
    const [, , user, password] = command.map(textOf);
    const subcommand = keyword(command, 1);
    const isRest = subcommand === 'RESTTOKEN';
    if (user === undefined || command.length > 4 || (isRest && password === undefined))
      return new RespError(`ERR wrong number of arguments for 'acl|${subcommand.toLowerCase()}' command`);
    try {
      if (!isRest) return Buffer.from(this.tokens.generatedToken(user, password));
      if (!(await this.users.isValid({ name: user, password: password as string })))
        return new RespError(`ERR Wrong password or user "${printable(user)}" does not exist`);
      return Buffer.from(this.tokens.restToken(user, password as string));
    } catch (error) {
      if (error instanceof RangeError) return new RespError(`ERR ${error.message}`);
      throw error;
    }
  }
}

function textOf(argument: Argument): string {
  return typeof argument === 'string' ? argument : argument.toString('utf8');
}

/** A name goes into a line of RESP2. */
function printable(text: string): string {
  return text.replace(/[\r\n]/g, ' ');
}
