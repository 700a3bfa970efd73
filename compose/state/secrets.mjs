import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { anythingRuns, commandLine } from './profile.mjs';
import { cards } from './services.mjs';

/** 32 random bytes are 43 characters of base64url: no character that a URL, an ini file or SQL would have to escape. */
const secret = (prefix = '') => prefix + randomBytes(32).toString('base64url');

/**
 * What a credential is made of, by its kind. An account's JSON is a multiple of three bytes long, so that its base64 ends
 * without an equals sign; of these characters base64 makes neither + nor /.
 */
const kinds = {
  name: (prefix) => prefix + randomBytes(6).toString('hex'),
  secret,
  account: () => btoa(JSON.stringify({ UserID: 'operator', Password: secret() })),
};

/** Those of the services that a start makes. */
const serviceMakers = Object.fromEntries(
  Object.values(cards)
    .flatMap(({ credentials }) => credentials)
    .filter(({ made }) => made.by === 'start')
    .map(({ variable, made: { as, prefix = '' } }) => [variable, () => kinds[as](prefix)]),
);

/** Every secret of a profile and how it is made. A name added here is added to existing files at the next start. */
const makers = {
  PORTICO_REDIS_PASSWORD: () => secret(),
  PORTICO_POSTGRES_PASSWORD: () => secret(),
  PORTICO_POSTGRES_ADMIN_PASSWORD: () => secret(),
  PORTICO_RABBITMQ_PASSWORD: () => secret(),
  PORTICO_RABBITMQ_COOKIE: () => secret(),
  ...serviceMakers,
  PORTICO_METRICS_TOKEN: () => secret(),
  PORTICO_ADMIN_TOKEN: () => secret(),
};

/** The names that go to the gateway as they are; the others are parts of the backends' addresses. */
export const gatewaySecrets = [...Object.keys(serviceMakers), 'PORTICO_METRICS_TOKEN', 'PORTICO_ADMIN_TOKEN'];

/** Those that a running backend has taken over, and goes by until it is started again. */
const backendSecrets = Object.keys(makers).filter(
  (name) => /_PASSWORD$/.test(name) && !gatewaySecrets.includes(name),
);

const fileOf = (p) => join(p.dir, 'secrets.env');

/**
 * Reads lines of `NAME=value`; comments and empty lines are passed over. As shells and Compose read them: blanks around a
 * value (an editor's carriage return is one) and quotes are not part of it.
 */
export function parseEnvFile(text) {
  const lines = text.split('\n').map((line) => /^([A-Z_]+)=\s*(.*?)\s*$/.exec(line));
  return Object.fromEntries(
    lines.flatMap((match) => (match ? [[match[1], match[2].replace(/^(["'])(.*)\1$/, '$2')]] : [])),
  );
}

/** Replaces a file that holds secrets in one step; only the owner may read it. */
export function writePrivateFile(file, text) {
  const fresh = `${file}.new`;
  writeFileSync(fresh, text, { mode: 0o600 });
  renameSync(fresh, file);
}

/** @param {import('./profile.mjs').Profile} p @returns {Record<string, string>} */
const knownSecrets = (p) => (existsSync(fileOf(p)) ? parseEnvFile(readFileSync(fileOf(p), 'utf8')) : {});

/** What an address, a statement of SQL and every backend's settings take as it is. */
const plainPassword = /^[\w.~-]+$/;
/** What a header takes. */
const plainToken = /^[!-~]{1,512}$/;
const isUsable = (name, value) => (backendSecrets.includes(name) ? plainPassword : plainToken).test(value);

/**
 * For a start, before anything is changed.
 * @throws {Error} where a secret cannot be used as the file tells it, or what runs has some that it no longer tells
 */
export function demandSecrets(p) {
  const known = knownSecrets(p);
  const odd = Object.keys(makers).filter((name) => known[name] && !isUsable(name, known[name]));
  if (odd.length > 0)
    throw new Error(
      `${odd.join(', ')} in ${fileOf(p)} cannot be used: a backend's password may hold letters, digits and - . _ ~ alone, a token no blank and nothing beyond ASCII. Mend it, or delete the line while nothing runs, and the next start makes another`,
    );
  const lost = backendSecrets.filter((name) => !known[name]);
  if (lost.length === 0 || !anythingRuns(p.run)) return;
  throw new Error(
    `${fileOf(p)} has lost ${lost.join(', ')} of what runs: put back what is lost, or ${commandLine('stop')}, after which ${commandLine('start')} makes new ones and keeps the data`,
  );
}

/**
 * The profile's secrets, made at the first call and kept in `secrets.env` (mode 600).
 * @param {import('./profile.mjs').Profile} p
 * @returns {Record<string, string>}
 */
export function secretsOf(p) {
  const file = fileOf(p);
  const known = knownSecrets(p);
  const missing = Object.keys(makers).filter((name) => !known[name]);
  for (const name of missing) known[name] = makers[name]();
  // what runs has others than these, which may still be put back
  const isInUse = missing.some((name) => backendSecrets.includes(name)) && anythingRuns(p.run);
  if (missing.length > 0 && !isInUse) {
    const lines = Object.entries(known).map(([name, value]) => `${name}=${value}`);
    writePrivateFile(
      file,
      `# Made by npm start. Delete a line while nothing runs, and the next start makes that secret anew.\n${lines.join('\n')}\n`,
    );
  }
  return known;
}
