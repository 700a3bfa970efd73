import type { AuditKind } from '../../../http/audit.js';
import { keyword } from '../resp/keyword.js';
import type { Command } from '../resp/resp-encoder.js';

/** As what the audit log tells a command, if it does. */
export type Audited = (command: Command) => AuditKind | undefined;

/** They show nothing of other users. */
const HARMLESS_ACL: ReadonlySet<string> = new Set(['WHOAMI', 'CAT', 'HELP']);
const REMOVING: ReadonlySet<string> = new Set(['FLUSH', 'DELETE', 'RESTORE']);

const removing: Audited = (command) => (REMOVING.has(keyword(command, 1)) ? 'destructive' : undefined);

const AUDITED: ReadonlyMap<string, Audited> = new Map<string, Audited>([
  ['FLUSHDB', () => 'destructive'],
  ['FLUSHALL', () => 'destructive'],
  ['SWAPDB', () => 'destructive'],
  ['SCRIPT', removing],
  ['FUNCTION', removing],
  ['ACL', (command) => (HARMLESS_ACL.has(keyword(command, 1)) ? undefined : 'administrative')],
  ['CONFIG', (command) => (/^(SET|RESETSTAT)$/.test(keyword(command, 1)) ? 'administrative' : undefined)],
]);

/** @param name in upper case */
export function auditedOf(name: string): Audited | undefined {
  return AUDITED.get(name);
}
