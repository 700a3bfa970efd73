import { z } from 'zod';
import type { Principal, RouteContext } from '../../../http/route.js';
import type { Row } from '../commands/commands.js';
import type { KvDeps } from '../deps.js';
import { keyword } from '../resp/keyword.js';
import type { Command } from '../resp/resp-encoder.js';

/** What a token made at run time may be allowed beside data. */
export const issuedPermissions = z.strictObject({
  admin: z
    .boolean()
    .default(false)
    .describe('ACL and CONFIG SET: with them a token could make credentials that outlive it.'),
});

/**
 * The command with its rule, or why it must not be sent, class word first. What the audit log tells is noted with the request.
 * @throws HttpError as `CommandRules.admit`
 */
export function admit(command: Command, context: RouteContext, { client }: KvDeps): Row | string {
  const row = client.rules.admit(command, context.principal.access);
  if (typeof row === 'string' || row.rule.audited === undefined) return row;
  const kind = row.rule.audited(command);
  if (kind === undefined) return row;
  const { name } = row.rule;
  if (kind === 'administrative' && !mayAdminister(context.principal))
    return `NOPERM this token has no permissions to run the '${name.toLowerCase()}' command`;
  context.audit(kind, { [name]: keyword(command, 1).slice(0, 100) });
  return row;
}

/** Tokens of the configuration may; what users of Redis may is Redis' matter. */
function mayAdminister({ permissions }: Principal): boolean {
  return permissions === undefined || permissions.admin === true;
}
