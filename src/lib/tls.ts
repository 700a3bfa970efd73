import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { z } from 'zod';
import { addressesOf } from './several-hosts.js';

const NAMES = ['ca', 'cert', 'key'] as const;

type TlsFile = (typeof NAMES)[number];

export type TlsFiles = Readonly<Record<TlsFile, string | null>>;

export interface TlsProblem {
  readonly key: TlsFile;
  readonly problem: string;
}

const file = (what: string) =>
  z.string().min(1).nullable().default(null).describe(`Path of a PEM file: ${what}.`);

/** The keys of a section that names the certificate files of a connection. */
export const tlsFiles = {
  ca: file('certificates of the only authorities that are trusted; null: the well-known ones'),
  cert: file("the gateway's own certificate, where the server asks for one"),
  key: file('its key, without a passphrase'),
};

/** The certificate files of a connection. They are read and checked with the configuration, not at the first connection. */
export const tlsSettings = z.strictObject(tlsFiles).superRefine((files, context) => {
  addTlsIssues(context, tlsProblems(files));
});

export function addTlsIssues(context: z.core.$RefinementCtx, problems: readonly TlsProblem[]): void {
  for (const { key, problem } of problems)
    context.addIssue({ code: 'custom', path: [key], message: problem });
}

/** @throws Error when a file can no longer be read */
export function tlsOptions({ ca, cert, key }: TlsFiles): ConnectionOptions {
  return {
    ...(ca === null ? {} : { ca: readFileSync(ca) }),
    ...(cert === null ? {} : { cert: readFileSync(cert) }),
    ...(key === null ? {} : { key: readFileSync(key) }),
  };
}

/** The files that are given. */
export function givenTlsFiles(files: TlsFiles): TlsFile[] {
  return NAMES.filter((name) => files[name] !== null);
}

/** What is wrong with the files themselves, and with a certificate and its key together. */
export function tlsProblems(files: TlsFiles): TlsProblem[] {
  const problems = NAMES.flatMap((key) => {
    const problem = problemOf(key, files[key]);
    return problem === undefined ? [] : [{ key, problem }];
  });
  if (problems.length > 0) return problems;
  const { cert, key } = files;
  if (cert === null && key === null) return [];
  if (cert === null) return [{ key: 'cert', problem: 'missing, although there is a key' }];
  if (key === null) return [{ key: 'key', problem: 'missing, although there is a certificate' }];
  const fits = new X509Certificate(readFileSync(cert)).checkPrivateKey(createPrivateKey(readFileSync(key)));
  return fits ? [] : [{ key: 'key', problem: 'not the key of the certificate' }];
}

/** What is wrong with a file of authorities. */
export function certificateFileProblem(path: string | null): string | undefined {
  return problemOf('ca', path);
}

function problemOf(name: TlsFile, path: string | null): string | undefined {
  if (path === null) return undefined;
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    return `the file cannot be read (${(error as NodeJS.ErrnoException).code})`;
  }
  try {
    // Node passes over a list of authorities that holds none
    if (name === 'key') createPrivateKey(bytes);
    else new X509Certificate(bytes);
    return undefined;
  } catch {
    return `expected a PEM file with ${name === 'key' ? 'a key without a passphrase' : 'certificates'}`;
  }
}

/** The names that node-postgres, as libpq, has for them in the query of an address. */
const POSTGRES_NAMES: Readonly<Record<TlsFile, string>> = {
  ca: 'sslrootcert',
  cert: 'sslcert',
  key: 'sslkey',
};

/** What is wrong with the files that an address of Postgres names, a line each. An address that is none has no files. */
export function postgresTlsProblems(address: string): string[] {
  const [first = ''] = addressesOf(address);
  if (!URL.canParse(first)) return [];
  // of a name that is repeated, node-postgres takes the last
  const query = new Map(new URL(first).searchParams);
  const given = (key: TlsFile) => query.get(POSTGRES_NAMES[key]) || null;
  const files = { ca: given('ca'), cert: given('cert'), key: given('key') };
  return tlsProblems(files).map(({ key, problem }) => `${POSTGRES_NAMES[key]}: ${problem}`);
}
