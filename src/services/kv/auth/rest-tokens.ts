import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { Principal } from '../../../http/route.js';

/** A request in the name of a user of Redis' own access lists: Redis decides what it may do. */
export class AclPrincipal implements Principal {
  readonly access = 'full';
  /** A label, unique to user and password and no way to either. */
  readonly key: string;

  constructor(
    readonly name: string,
    readonly password: string,
  ) {
    this.key = createHmac('sha256', password).update(name).digest('base64url');
  }
}

/** `ACL RESTTOKEN`: user and password are sealed in the token. */
const REST_PREFIX = 'acl_';
/** `ACL GENTOKEN`: the user is sealed in the token, which itself is the password. */
const GENERATED_PREFIX = 'gen_';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Beyond it no token of ours: user names and passwords come from JSON arguments of any size. */
const LONGEST_TOKEN = 4_096;

/**
 * Default token of a database without a configured one: derived from the database's password, so that every replica
 * of the gateway has the same and that resetting the password revokes it.
 */
export function derivedToken(password: string, database: string, kind: 'standard' | 'read-only'): string {
  return createHmac('sha256', password).update(`portico kv token\n${database}\n${kind}`).digest('base64url');
}

/**
 * Makes and opens the tokens of users. A token is sealed, not stored: it is valid on every gateway with the same
 * `secret`, and what it allows is Redis' matter at each use.
 */
export class RestTokens {
  private key: Buffer;

  /** @param secret the database's password, or the Standard token where there is none */
  constructor(secret: string, database: string) {
    this.key = Buffer.from(hkdfSync('sha256', secret, '', `portico kv acl tokens\n${database}`, 32));
  }

  /** From now as `other`, whose secret has taken the place of this one's. */
  become(other: RestTokens): void {
    this.key = other.key;
  }

  /** @throws RangeError when user and password are too long for a header */
  restToken(user: string, password: string): string {
    return this.seal(REST_PREFIX, JSON.stringify([user, password]), randomBytes(IV_BYTES));
  }

  /** Random without a `password`; with one, always the same for the same user and password. @throws as `restToken` */
  generatedToken(user: string, password: string | undefined): string {
    const plain = JSON.stringify([user]);
    if (password === undefined) return this.seal(GENERATED_PREFIX, plain, randomBytes(IV_BYTES));
    const iv = createHmac('sha256', this.key)
      .update(JSON.stringify([user, password]))
      .digest();
    return this.seal(GENERATED_PREFIX, plain, iv.subarray(0, IV_BYTES));
  }

  /** Whose token it is; `undefined` for what was not made with this secret. */
  principalOf(token: string): AclPrincipal | undefined {
    const prefix = [REST_PREFIX, GENERATED_PREFIX].find((start) => token.startsWith(start));
    if (prefix === undefined || token.length > LONGEST_TOKEN) return undefined;
    const plain = this.open(prefix, token.slice(prefix.length));
    if (plain === undefined) return undefined;
    const [user, password] = JSON.parse(plain) as [string, string?];
    return new AclPrincipal(user, password ?? token);
  }

  private seal(prefix: string, plain: string, iv: Buffer): string {
    const cipher = createCipheriv(CIPHER, this.key, iv).setAAD(Buffer.from(prefix));
    const sealed = Buffer.concat([iv, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    const token = prefix + sealed.toString('base64url');
    if (token.length > LONGEST_TOKEN) throw new RangeError('user and password are too long for a token');
    return token;
  }

  private open(prefix: string, text: string): string | undefined {
    const sealed = Buffer.from(text, 'base64url');
    if (sealed.length < IV_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv(CIPHER, this.key, sealed.subarray(0, IV_BYTES))
      .setAAD(Buffer.from(prefix))
      .setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      const plain = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES));
      return Buffer.concat([plain, decipher.final()]).toString('utf8');
    } catch {
      // not sealed with this key
      return undefined;
    }
  }
}
