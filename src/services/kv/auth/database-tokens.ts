import type { DatabaseSettings } from '../settings.js';
import { derivedToken, RestTokens } from './rest-tokens.js';

export interface DatabaseTokens {
  readonly standard: string | undefined;
  readonly readOnly: string | undefined;
  /** Makes and opens the tokens of ACL users. */
  readonly rest: RestTokens | undefined;
}

/** The password that Redis is reached with; `undefined` when there is none. */
export function passwordOf(url: string | null): string | undefined {
  const password = url === null ? '' : new URL(url).password;
  return password === '' ? undefined : decodeURIComponent(password);
}

/** A database's tokens: the configured ones, else those that its password yields; none where there is neither. */
export function databaseTokens({ name, url, token, readOnlyToken }: DatabaseSettings): DatabaseTokens {
  const password = passwordOf(url);
  const derive = (kind: 'standard' | 'read-only') =>
    password === undefined ? undefined : derivedToken(password, name, kind);
  const standard = token ?? derive('standard');
  const secret = password ?? standard;
  return {
    standard,
    readOnly: readOnlyToken ?? derive('read-only'),
    rest: secret === undefined ? undefined : new RestTokens(secret, name),
  };
}
