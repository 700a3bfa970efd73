import { z } from 'zod';
import { sessionKindProblem } from '../postgres/postgres-address.js';
import { addressesOf } from '../several-hosts.js';
import { postgresTlsProblems } from '../tls.js';

/**
 * What the configuration needs to know of a key beside its type: the short environment variable for the key of a
 * list's first entry, whether its value is a secret (never printed), and whether the gateway takes a new one while it runs.
 */
export interface SettingMeta {
  env?: string;
  secret?: boolean;
  /** It can be exchanged while the gateway runs; of a section or list, with all that is in it. */
  reload?: boolean;
}

/** A URL path such as `/kv`: one leading slash, no trailing one; `/` alone is the root. */
export const basePath = () =>
  z
    .string()
    .regex(
      /^\/$|^(\/[A-Za-z0-9._~-]+)+$/,
      'expected a path such as /kv: a leading slash, no trailing one, plain characters',
    );

/** Name of a database, index or cluster: as it appears in metrics, logs and `/readyz`. */
export const instanceName = () =>
  z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'expected 1 to 64 letters, digits, ".", "_" or "-"');

export const tcpPort = () => z.int().min(1).max(65_535);

/** A secret of printable ASCII without blanks (it travels in a header); how strong it must be depends on where the gateway listens. */
export const secret = (env?: string) =>
  z
    .string()
    .regex(/^[\x21-\x7e]{1,512}$/, 'expected 1 to 512 printable ASCII characters without blanks')
    .meta({ secret: true, ...(env === undefined ? {} : { env }) });

/** A secret by which clients show who they are. */
export const clientSecret = (env: string) => secret(env).meta({ reload: true });

/** Whether user, password, host and path are percent-encoded as they must be to be read back. */
function isDecodable({ username, password, hostname, pathname }: URL): boolean {
  try {
    return decodeURIComponent(username + password + hostname + pathname) !== undefined;
  } catch {
    return false;
  }
}

/** The address of a Unix socket has no host, and then a URL may have no user and password either. */
function withHost(text: string): string {
  return text.replace(/^(unix:\/\/[^/]*@)\//, '$1localhost/');
}

/**
 * A backend's URL; it may hold a password, so it counts as a secret.
 * @param path what may follow the host
 * @param addresses those that it names
 */
export const serverUrl = (
  protocols: readonly string[],
  path: (url: URL) => boolean = () => true,
  addresses: (text: string) => string[] = (text) => [text],
) => {
  const all = (text: string, isRight: (url: URL) => boolean) =>
    addresses(text).every((one) => !URL.canParse(one) || isRight(new URL(one)));
  return z
    .string()
    .overwrite(withHost)
    .refine((text) => all(text, isDecodable), { error: 'expected a percent sign in it to be written as %25' })
    .refine((text) => all(text, path), {
      error: 'expected nothing but the number of a database behind the host',
    })
    .refine(
      (text) =>
        addresses(text).every((one) => URL.canParse(one) && protocols.includes(new URL(one).protocol)),
      { error: `expected a URL that starts with ${protocols.map((p) => `${p}//`).join(' or ')}` },
    );
};

/** The same for a backend that `npm start` brings when there is no address (`null`). */
export const backendUrl = (protocols: readonly string[], env: string, path?: (url: URL) => boolean) =>
  serverUrl(protocols, path).nullable().default(null).meta({ secret: true, env });

/** The same for one whose address may name several hosts with commas between them. */
export const severalHostsUrl = (protocols: readonly string[], env: string) =>
  serverUrl(protocols, undefined, addressesOf).nullable().default(null).meta({ secret: true, env });

/** The same for Postgres, with the certificate files that the address may name: node-postgres reads them at each connection only. */
export const postgresUrl = (env?: string) =>
  serverUrl(['postgres:', 'postgresql:'], undefined, addressesOf)
    .superRefine((text, context) => {
      const problems = [...postgresTlsProblems(text), sessionKindProblem(text)];
      for (const message of problems)
        if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .nullable()
    .default(null)
    .meta({ secret: true, ...(env === undefined ? {} : { env }) });

/** Whether a service is served; without a word of the user's, `null`, its addresses decide. */
export const serviceSwitch = () =>
  z
    .boolean()
    .nullable()
    .default(null)
    .describe('Whether the service is served. null: where the address of its backend is given.');

/** Why `npm start` could not bring this service's backend; for operators only. */
export const missingReason = (env: string) =>
  z
    .string()
    .max(8_000)
    .nullable()
    .default(null)
    .meta({ env })
    .describe(
      'Set by npm start: why the backend could not be started. For the log and, with http.metricsToken, /readyz; the service joins when the backend is there.',
    );

/** For how long the same `Idempotency-Key` gets the same reply. */
export const idempotencyWindow = () =>
  z
    .int()
    .min(0)
    .max(86_400)
    .default(86_400)
    .describe(
      'Seconds for which a write with the header Idempotency-Key gets the same reply again (docs/operations.md). 0: the header says nothing.',
    );

/** Milliseconds, at least `min`. */
export const milliseconds = (byDefault: number, min = 1) =>
  z.int().min(min).max(86_400_000).default(byDefault);
