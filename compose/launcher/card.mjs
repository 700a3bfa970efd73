import { join, relative } from 'node:path';
import { writePrivateFile } from '../state/secrets.mjs';
import { cards, urlVariable } from '../state/services.mjs';

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
  /** @type {[string, string | undefined][]} the same under the names that SDKs and frameworks read */
  const others = [];
  for (const service of report.services) {
    const { credentials = [], urlNames = [] } = cards[service] ?? {};
    pairs.push([urlVariable(service), report.urls[service]]);
    for (const name of urlNames) others.push([name, report.urls[service]]);
    for (const { variable, otherNames } of credentials) {
      pairs.push([variable, env[variable]]);
      for (const name of otherNames) others.push([name, env[variable]]);
    }
  }
  pairs.push(['PORTICO_METRICS_TOKEN', env.PORTICO_METRICS_TOKEN]);
  pairs.push(['PORTICO_ADMIN_TOKEN', env.PORTICO_ADMIN_TOKEN]);
  for (const name of addresses) pairs.push([name, env[name]]);
  return [...pairs, ...others].filter(([, value]) => value);
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

/** As one would name it here. */
const nearby = (path) => (path.startsWith(`${process.cwd()}/`) ? relative(process.cwd(), path) : path);

/** A service may wait for two backends, and the first one's many words must not hide the second. */
export const reasonsOf = (missing) => missing.split(/; (?=(?:redis|postgres|pgvector|kafka|rabbitmq): )/);

function serviceLines(report, env, service) {
  const lines = [`  ${service.padEnd(8)}${report.urls[service]}`];
  for (const { variable: name } of cards[service]?.credentials ?? []) {
    const label = name.replace(`PORTICO_${service.toUpperCase()}_`, '').toLowerCase().replaceAll('_', ' ');
    lines.push(`          ${label.padEnd(20)}${env[name] ?? 'as the configuration file says'}`);
  }
  const missing = env[`PORTICO_${service.toUpperCase()}_MISSING`];
  for (const reason of missing ? reasonsOf(missing) : [])
    lines.push(`          NOT AVAILABLE: ${shortened(reason)}`);
  return lines;
}

/** Who makes tokens while it runs. */
function adminLines({ operationsUrl }, env) {
  if (!env.PORTICO_ADMIN_TOKEN) return [];
  return [`  admin   ${operationsUrl}/admin`, `          ${'token'.padEnd(20)}${env.PORTICO_ADMIN_TOKEN}`];
}

/**
 * What is printed when all is up.
 * @param {import('./gateway.mjs').Check} report
 * @param {Record<string, string | undefined>} env the gateway's
 * @param {{file: string, down: string[], notes: string[], logs: string, console?: string}} about notes: what one should know of the
 *   backends; console: a link that signs in
 */
export function card(report, env, { file, down, notes, logs, console: link }) {
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
    ...(link ? [`  console         ${link}`, ''] : []),
    ...report.services.flatMap((service) => serviceLines(report, env, service)),
    ...adminLines(report, env),
    '',
    `  backends        ${where.join(', ') || 'none'}`,
    ...notes.map((line) => `  note            ${line}`),
    ...down.map((line) => `  NOT UP YET      ${line}`),
    `  all of this     ${nearby(file)}   (set -a; . ${quoted(file)}; set +a)`,
    `  logs            ${nearby(logs)}/`,
    '',
  ].join('\n');
}
