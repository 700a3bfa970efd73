import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { z } from 'zod';

const file = (what: string) =>
  z.string().min(1).nullable().default(null).describe(`Path of a PEM file: ${what}.`);

export interface TlsFiles {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
}

type TlsFile = keyof TlsFiles;

/** Certificate files of a connection. They are read and checked with the configuration, not at the first connection. */
export const tlsSettings = z
  .strictObject({
    ca: file('certificates of the only authorities that are trusted; null: the well-known ones'),
    cert: file("the gateway's own certificate, where the server asks for one"),
    key: file('its key, without a passphrase'),
  })
  .superRefine((files, context) => {
    for (const { key, problem } of problemsOf(files))
      context.addIssue({ code: 'custom', path: [key], message: problem });
  });

/** @throws Error when a file can no longer be read */
export function tlsOptions({ ca, cert, key }: TlsFiles): ConnectionOptions {
  return {
    ...(ca === null ? {} : { ca: readFileSync(ca) }),
    ...(cert === null ? {} : { cert: readFileSync(cert) }),
    ...(key === null ? {} : { key: readFileSync(key) }),
  };
}

/** The files that are given, although TLS is spoken to none of `urls`. */
export function unusedTlsFiles(files: TlsFiles, urls: readonly string[]): TlsFile[] {
  if (urls.length === 0 || urls.some((url) => url.startsWith('rediss:'))) return [];
  return (['ca', 'cert', 'key'] as const).filter((name) => files[name] !== null);
}

function problemsOf(files: TlsFiles): { readonly key: TlsFile; readonly problem: string }[] {
  const names: readonly TlsFile[] = ['ca', 'cert', 'key'];
  const problems = names.flatMap((name) => {
    const problem = problemOf(name, files[name]);
    return problem === undefined ? [] : [{ key: name, problem }];
  });
  if (problems.length > 0) return problems;
  const { cert, key } = files;
  if (cert === null && key === null) return [];
  if (cert === null) return [{ key: 'cert', problem: 'missing, although there is a key' }];
  if (key === null) return [{ key: 'key', problem: 'missing, although there is a certificate' }];
  const fits = new X509Certificate(readFileSync(cert)).checkPrivateKey(createPrivateKey(readFileSync(key)));
  return fits ? [] : [{ key: 'key', problem: 'not the key of the certificate' }];
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
