import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { CodePlace } from './code-place.js';

/** So long a link of `npm start` can be opened, in ms. */
export const CODE_LIFETIME_MS = 3_600_000;

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** What waits for a code. */
interface Waiting {
  readonly credentials: readonly string[];
  /** ms since 1970 */
  readonly until: number;
}

/**
 * Codes of 256 random bits, each good for one exchange within an hour. What they stand for is sealed with the code itself and
 * kept under a digest of it: nobody who sees where it waits can use it, and a wrong code is looked up like a right one.
 */
export class SignInCodes {
  constructor(
    private readonly place: CodePlace,
    private readonly now: () => number,
  ) {}

  /** @returns `undefined` where too many wait */
  async issue(credentials: readonly string[]): Promise<string | undefined> {
    const code = randomBytes(32).toString('base64url');
    const waiting: Waiting = { credentials, until: this.now() + CODE_LIFETIME_MS };
    const taken = await this.place.put(nameOf(code), seal(code, JSON.stringify(waiting)));
    return taken ? code : undefined;
  }

  /** The credentials that it stands for, once; `undefined` when it is unknown, used or too old. */
  async redeem(code: string): Promise<readonly string[] | undefined> {
    const sealed = await this.place.take(nameOf(code));
    if (sealed === undefined) return undefined;
    const { credentials, until } = JSON.parse(open(code, sealed)) as Waiting;
    return until > this.now() ? credentials : undefined;
  }
}

const digestOf = (purpose: string, code: string) => createHash('sha256').update(`${purpose}\0${code}`);

const nameOf = (code: string) => digestOf('portico console name', code).digest('hex');

const keyOf = (code: string) => digestOf('portico console key', code).digest();

function seal(code: string, plain: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, keyOf(code), iv);
  return Buffer.concat([iv, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

function open(code: string, sealed: Buffer): string {
  const decipher = createDecipheriv(CIPHER, keyOf(code), sealed.subarray(0, IV_BYTES));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  return decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
}
