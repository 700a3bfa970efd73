import { asRedisCompares, keyword } from '../resp/keyword.js';
import type { Argument, Command } from '../resp/resp-encoder.js';

/** Parameters that change how data is kept, not where, and not who may connect. */
const SETTABLE =
  /^(maxmemory(-policy|-samples|-eviction-tenacity)?|lfu-.+|lazyfree-.+|slowlog-.+|latency-.+|notify-keyspace-events|(hash|list|set|zset)-max-.+|list-compress-depth|stream-node-max-.+|hll-sparse-max-bytes|active-expire-effort|(lua|busy)-.+|activerehashing)$/i;

/** Parameters whose value is a password. */
const SECRETS = [
  'requirepass',
  'masterauth',
  'masteruser',
  'primaryauth',
  'primaryuser',
  'tls-key-file-pass',
  'tls-client-key-file-pass',
];

/** CONFIG may read everything but passwords and set what concerns data only; a path set here would be a file written on the host. */
export function refusedConfig(command: Command): string | undefined {
  switch (keyword(command, 1)) {
    case 'GET':
      return refusedGet(command);
    case 'SET':
      return refusedSet(command);
    case 'RESETSTAT':
    case 'HELP':
    case '':
      return undefined;
    default:
      return 'only GET, SET and RESETSTAT of it do not act on the host';
  }
}

function refusedGet(command: Command): string | undefined {
  for (let i = 2; i < command.length; i++) {
    const pattern = asRedisCompares(command[i] as Argument);
    // no name needs a class or a backslash, and Redis reads them in ways of its own
    if (pattern.length > 256 || /[[\\]/.test(pattern) || SECRETS.some((name) => mayMatch(pattern, name)))
      return 'the pattern takes in passwords: name the parameters';
  }
  return undefined;
}

function refusedSet(command: Command): string | undefined {
  for (let i = 2; i < command.length; i += 2) {
    if (!SETTABLE.test(asRedisCompares(command[i] as Argument)))
      return 'this parameter acts on the server, not on data';
  }
  return undefined;
}

/**
 * Whether a glob of `*` and `?` could match `name`. Goes back to the last star only, so the time is at most the product of
 * the lengths.
 */
function mayMatch(pattern: string, name: string): boolean {
  const parts = pattern.toLowerCase();
  let part = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < name.length) {
    const wanted = parts[part];
    if (wanted === '*') {
      star = part++;
      starAt = at;
    } else if (wanted !== undefined && (wanted === '?' || wanted === name[at])) {
      part++;
      at++;
    } else if (star >= 0) {
      part = star + 1;
      at = ++starAt;
    } else {
      return false;
    }
  }
  return /^\**$/.test(parts.slice(part));
}
