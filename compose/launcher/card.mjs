import { join } from 'node:path';
import { stateDir } from '../state/profile.mjs';
import { writePrivateFile } from '../state/secrets.mjs';

/** @type {Record<string, string[]>} the variables of each service that a client needs beside its URL */
const credentials = {
  kv: ['PORTICO_KV_TOKEN', 'PORTICO_KV_READONLY_TOKEN'],
  vector: ['PORTICO_VECTOR_TOKEN', 'PORTICO_VECTOR_READONLY_TOKEN'],
  broker: ['PORTICO_BROKER_USERNAME', 'PORTICO_BROKER_PASSWORD'],
  queue: ['PORTICO_QUEUE_TOKEN', 'PORTICO_QUEUE_CURRENT_SIGNING_KEY', 'PORTICO_QUEUE_NEXT_SIGNING_KEY'],
};

/** @type {Record<string, string>} the same under the names that SDKs and frameworks read */
const otherNames = {
  UPSTASH_REDIS_REST_URL: 'PORTICO_KV_URL',
  UPSTASH_REDIS_REST_TOKEN: 'PORTICO_KV_TOKEN',
  KV_REST_API_URL: 'PORTICO_KV_URL',
  KV_REST_API_TOKEN: 'PORTICO_KV_TOKEN',
  KV_REST_API_READ_ONLY_TOKEN: 'PORTICO_KV_READONLY_TOKEN',
  UPSTASH_VECTOR_REST_URL: 'PORTICO_VECTOR_URL',
  UPSTASH_VECTOR_REST_TOKEN: 'PORTICO_VECTOR_TOKEN',
  UPSTASH_VECTOR_REST_READONLY_TOKEN: 'PORTICO_VECTOR_READONLY_TOKEN',
  UPSTASH_KAFKA_REST_URL: 'PORTICO_BROKER_URL',
  UPSTASH_KAFKA_REST_USERNAME: 'PORTICO_BROKER_USERNAME',
  UPSTASH_KAFKA_REST_PASSWORD: 'PORTICO_BROKER_PASSWORD',
  QSTASH_URL: 'PORTICO_QUEUE_URL',
  QSTASH_TOKEN: 'PORTICO_QUEUE_TOKEN',
  QSTASH_CURRENT_SIGNING_KEY: 'PORTICO_QUEUE_CURRENT_SIGNING_KEY',
  QSTASH_NEXT_SIGNING_KEY: 'PORTICO_QUEUE_NEXT_SIGNING_KEY',
};

/** Characters of a backend's reason on the card; the gateway's log has all of it. */
const reasonWidth = 600;

const addresses = [
  'PORTICO_REDIS_URL',
  'PORTICO_DATABASE_URL',
  'PORTICO_KAFKA_BROKERS',
  'PORTICO_RABBITMQ_URL',
];

/**
 * What a client needs, as pairs of variable and value.
 * @param {import('./gateway.mjs').Check} report
 * @param {Record<string, string | undefined>} env the gateway's
 */
function connection(report, env) {
  /** @type {[string, string | undefined][]} */
  const pairs = [['PORTICO_URL', report.url]];
  for (const service of report.services) {
    pairs.push([`PORTICO_${service.toUpperCase()}_URL`, report.urls[service]]);
    for (const name of credentials[service] ?? []) pairs.push([name, env[name]]);
  }
  pairs.push(['PORTICO_METRICS_TOKEN', env.PORTICO_METRICS_TOKEN]);
  for (const name of addresses) pairs.push([name, env[name]]);
  const known = Object.fromEntries(pairs);
  for (const [name, own] of Object.entries(otherNames)) pairs.push([name, known[own]]);
  return pairs.filter(([, value]) => value);
}

/** As a shell reads it back: an address of one's own may hold an ampersand, a folder's name a blank. */
export const quoted = (text) => (/^[\w./:@%+=,-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/**
 * Writes `.portico/connection.env`, readable by the owner alone.
 * @returns {string} its path
 */
export function writeConnection(p, report, env) {
  const file = join(p.dir, 'connection.env');
  const lines = connection(report, env).map(([name, value = '']) => `${name}=${quoted(value)}`);
  writePrivateFile(
    file,
    `# Written by npm start. Use it in a shell: set -a; . ${quoted(file)}; set +a\n${lines.join('\n')}\n`,
  );
  return file;
}

/** What is wrong stands at a reason's beginning, the way out or a log's last words at its end: the middle can go. */
function shortened(reason) {
  if (reason.length <= reasonWidth) return reason;
  const half = reasonWidth / 2;
  return `${reason.slice(0, half)} ... (all of it in the gateway's log) ... ${reason.slice(-half)}`;
}

/** A service may wait for two backends, and the first one's many words must not hide the second. */
const reasonsOf = (missing) => missing.split(/; (?=(?:redis|postgres|pgvector|kafka|rabbitmq): )/);

function serviceLines(report, env, service) {
  const lines = [`  ${service.padEnd(8)}${report.urls[service]}`];
  for (const name of credentials[service] ?? []) {
    const label = name.replace(`PORTICO_${service.toUpperCase()}_`, '').toLowerCase().replaceAll('_', ' ');
    lines.push(`          ${label.padEnd(20)}${env[name] ?? 'as the configuration file says'}`);
  }
  const missing = env[`PORTICO_${service.toUpperCase()}_MISSING`];
  for (const reason of missing ? reasonsOf(missing) : [])
    lines.push(`          NOT AVAILABLE: ${shortened(reason)}`);
  return lines;
}

/**
 * What is printed when all is up.
 * @param {import('./gateway.mjs').Check} report
 * @param {Record<string, string | undefined>} env the gateway's
 * @param {{file: string, down: string[], notes: string[], logs: string}} about notes: what one should know of the backends
 */
export function card(report, env, { file, down, notes, logs }) {
  const where = addresses
    .filter((name) => env[name])
    .map(
      (name) =>
        `${name.replace(/PORTICO_|_URL|_BROKERS/g, '').toLowerCase()} ${env[name]?.replace(/^.*@/, '')}`,
    );
  return [
    '',
    `Portico: ${report.url}`,
    '',
    ...report.services.flatMap((service) => serviceLines(report, env, service)),
    '',
    `  backends        ${where.join(', ') || 'none'}`,
    ...notes.map((line) => `  note            ${line}`),
    ...down.map((line) => `  NOT UP YET      ${line}`),
    `  all of this     ${file.replace(`${join(stateDir, '..')}/`, '')}   (set -a; . ${quoted(file)}; set +a)`,
    `  logs            ${logs}`,
    '',
  ].join('\n');
}
