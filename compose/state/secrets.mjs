import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { anythingRuns, commandLine } from './profile.mjs';
import { cards } from './services.mjs';

/** 32 random bytes are 43 characters of base64url: no character that a URL, an ini file or SQL would have to escape. */
const secret = (prefix = '') => prefix + randomBytes(32).toString('base64url');

/** Those of the services that a start makes. */
const serviceMakers = Object.fromEntries(
  Object.values(cards)
    .flatMap(({ credentials }) => credentials)
    .filter(({ made }) => made.by === 'start')
    .map(({ variable, made: { as, prefix = '' } }) => [
      variable,
      () => (as === 'name' ? prefix + randomBytes(6).toString('hex') : secret(prefix)),
    ]),
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
};

/** The names that go to the gateway as they are; the others are parts of the backends' addresses. */
export const gatewaySecrets = [...Object.keys(serviceMakers), 'PORTICO_METRICS_TOKEN'];

/** Those that a running backend has taken over, and goes by until it is started again. */
const backendSecrets = Object.keys(makers).filter(
  (name) => /_PASSWORD$/.test(name) && !gatewaySecrets.includes(name),
);

const fileOf = (p) => join(p.dir, 'secrets.env');

/** Reads lines of `NAME=value`; comments and empty lines are passed over. */
export function parseEnvFile(text) {
  const lines = text.split('\n').filter((line) => /^[A-Z_]+=/.test(line));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
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

/** @throws {Error} where what runs has passwords that its file no longer tells */
export function demandSecrets(p) {
  const known = knownSecrets(p);
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
