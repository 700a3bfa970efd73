import { hash, randomBytes } from 'node:crypto';

/** What every token made at run time begins with: what does not is not looked up. */
export const TOKEN_PREFIX = 'ptk_';

/** Where a token is valid, and for what. */
export interface Grant {
  readonly service: string;
  /** Names of databases, indexes or clusters; `undefined`: all of the service. */
  readonly instances?: readonly string[] | undefined;
  readonly access: 'full' | 'read';
  /** As the service describes them; checked when the token was made. */
  readonly permissions?: Readonly<Record<string, unknown>> | undefined;
}

/** What is said of a token. It never changes: who wants another makes another. */
export interface TokenRecord {
  readonly name: string;
  readonly grants: readonly Grant[];
  /** ISO 8601. */
  readonly createdAt: string;
  readonly expiresAt?: string | undefined;
  readonly rateLimit?: { readonly requests: number; readonly seconds: number } | undefined;
  readonly quota?: { readonly requests: number; readonly per: 'day' | 'month' } | undefined;
}

/** As it is stored: the token itself is not. */
export interface StoredToken {
  readonly id: string;
  /** SHA-256 of the token, in hexadecimal. Of 32 random bytes a slow hash would guard nothing. */
  readonly digest: string;
  readonly record: TokenRecord;
}

export const digestOf = (token: string): string => hash('sha256', token);

export const newToken = (): string => TOKEN_PREFIX + randomBytes(32).toString('base64url');

/** Also the user name where credentials have one: no blank and no colon. */
export const newTokenId = (): string => `tk_${randomBytes(9).toString('hex')}`;

/** Whether it may be such an id: no other is looked for, which a store might not take. */
export const isTokenId = (text: string): boolean => /^tk_[0-9a-f]{18}$/.test(text);
