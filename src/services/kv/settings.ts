import { z } from 'zod';
import { HOST_AND_PORT } from '../../lib/address.js';
import {
  backendUrl,
  basePath,
  clientSecret,
  idempotencyWindow,
  instanceName,
  milliseconds,
  missingReason,
  serverUrl,
  serviceSwitch,
  tcpPort,
} from '../../lib/settings/settings.js';
import { givenTlsFiles, tlsSettings } from '../../lib/tls.js';

const bytes = (byDefault: number) =>
  z
    .int()
    .min(1_024)
    .max(512 * 1024 * 1024)
    .default(byDefault);

/** Settings of a database whose servers are found by Redis Sentinel; spread into the database's own. */
const sentinelSettings = {
  sentinels: z
    .array(z.string().regex(HOST_AND_PORT, 'expected host:port'))
    .default([])
    .describe(
      'Addresses (host:port) of Redis Sentinels; the host of url is then the name of the primary that they monitor.',
    ),
  sentinelUsername: z.string().min(1).nullable().default(null).describe('User for the Sentinels themselves.'),
  sentinelPassword: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .meta({ secret: true })
    .describe('Password for the Sentinels themselves.'),
  sentinelTls: z.boolean().default(false).describe('Whether the Sentinels speak TLS; with the files of tls.'),
};

/** Settings of a database with replicas that are read from; spread into the database's own. */
const replicaSettings = {
  replicas: z
    .array(serverUrl(['redis:', 'rediss:', 'unix:'], namesDatabase))
    .default([])
    .meta({ secret: true, env: 'PORTICO_REDIS_REPLICAS' })
    .describe(
      'Addresses of replicas of url, which answer commands that only read. Without user and password, those of url.',
    ),
  readFromReplicas: z
    .boolean()
    .default(false)
    .describe('With sentinels: whether commands that only read go to a replica that the Sentinels name.'),
};

/** Settings of a database on a Redis Cluster; spread into the database's own. */
const clusterSettings = {
  cluster: z
    .boolean()
    .default(false)
    .describe('Whether url names a node of a Redis Cluster; the other nodes are learned from it.'),
  nodes: z
    .array(z.string().regex(HOST_AND_PORT, 'expected host:port'))
    .default([])
    .describe('Further nodes (host:port) of the cluster, for when the one in url is away at the start.'),
};

const databaseFields = z.strictObject({
  name: instanceName().default('default').describe('Name in logs, metrics and /readyz.'),
  path: basePath().default('/kv').describe('Base path of this database.'),
  port: tcpPort()
    .nullable()
    .default(null)
    .describe("Own port where this database is served at / as well (the contract's direct database port)."),
  url: backendUrl(['redis:', 'rediss:', 'unix:'], 'PORTICO_REDIS_URL', namesDatabase).describe(
    'Address of Redis or Valkey: redis://user:password@host:port/database, rediss:// for TLS, unix://user:password@/path/of/socket?db=0.',
  ),
  tls: tlsSettings.prefault({}).describe('Certificates for rediss://.'),
  ...sentinelSettings,
  ...replicaSettings,
  ...clusterSettings,
  token: clientSecret('PORTICO_KV_TOKEN')
    .nullable()
    .default(null)
    .describe(
      'Standard token: any command. null: derived from the password in url, so that a new password revokes it; `portico tokens` prints it.',
    ),
  readOnlyToken: clientSecret('PORTICO_KV_READONLY_TOKEN')
    .nullable()
    .default(null)
    .describe(
      'Read Only token: commands that only read, without SCAN, KEYS and RANDOMKEY. null: derived like the Standard token.',
    ),
  queryToken: z
    .boolean()
    .default(true)
    .describe('Whether the query parameter _token may carry the token instead of the header.'),
  deniedCommands: z
    .array(z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'expected names of commands'))
    .default([])
    .describe(
      'Commands that are refused beside those that never run over HTTP, such as FLUSHALL; by Redis too, within scripts, where it lets Portico make a user (ACL).',
    ),
  killScripts: z
    .boolean()
    .default(false)
    .meta({ env: 'PORTICO_KV_KILL_SCRIPTS' })
    .describe(
      'Whether a script that has had no end by timeoutMs is ended (SCRIPT KILL), if it has written nothing. Redis runs one at a time, whoever sent it: not for a Redis whose other clients have long scripts. npm start sets it for its own.',
    ),
  bodyLimit: bytes(32 * 1024 * 1024).describe('Largest request body in bytes (413).'),
  commandLimit: bytes(32 * 1024 * 1024).describe(
    'Bytes of one command, its name and arguments (413; in a pipeline an error entry; discards a transaction).',
  ),
  pipelineLimit: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(100_000)
    .describe('Commands of one pipeline or transaction (400).'),
  replyLimit: bytes(128 * 1024 * 1024).describe(
    'Bytes that all replies of Redis to one request may have; one beyond is an error entry.',
  ),
  dailyRequestLimit: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Commands a UTC day over all gateways (429), counted in the database under portico:requests:<day>. null: no limit.',
    ),
  timeoutMs: milliseconds(10_000, 100).describe(
    'A request whose body is there is answered by then (504). Redis silent for so long while replies are due: the connection is given up.',
  ),
  idempotencyWindow: idempotencyWindow(),
  connectTimeoutMs: milliseconds(5_000, 100).describe('How long one attempt to connect to Redis may take.'),
  exclusiveConnections: z
    .int()
    .min(0)
    .max(10_000)
    .default(100)
    .describe(
      'Requests that may have a connection of their own at once: XREAD BLOCK, and transactions of ACL users (503).',
    ),
  longestBlockMs: milliseconds(60_000).describe('A longer wait than that ends by then, BLOCK 0 too.'),
  aclUsers: z
    .int()
    .min(0)
    .max(10_000)
    .default(100)
    .describe('ACL users that may have a connection at once, made by their first request (503).'),
  streams: z
    .int()
    .min(0)
    .max(100_000)
    .default(1_000)
    .describe('Streams (subscribe, psubscribe, monitor) that may be open at once (503).'),
  streamHeartbeatMs: milliseconds(15_000, 1_000).describe(
    'A stream that was silent for so long gets a comment, so that proxies keep it open.',
  ),
});

const database = databaseFields.superRefine((settings, context) => {
  for (const { key, problem } of serverProblems(settings))
    context.addIssue({ code: 'custom', path: [key], message: problem });
  const { tls, url, replicas, sentinelTls } = settings;
  if (sentinelTls || url === null) return;
  if ([url, ...replicas].some((address) => address.startsWith('rediss:'))) return;
  for (const name of givenTlsFiles(tls))
    context.addIssue({
      code: 'custom',
      path: ['tls', name],
      message: 'the address has no TLS: expected rediss:// in url, or no file here',
    });
});

/** The section `kv` of the configuration. */
export const kvSettings = z.strictObject({
  enabled: serviceSwitch(),
  missing: missingReason('PORTICO_KV_MISSING'),
  databases: z
    .array(database)
    .min(1)
    .prefault([{}])
    .describe(
      'Databases, each with an address and tokens of its own. Several numbers of one Redis do not reach each other (docs/kv.md).',
    ),
});

export type KvSettings = z.output<typeof kvSettings>;
export type DatabaseSettings = KvSettings['databases'][number];

/** Parts of a database's settings that say which servers it has. */
interface ServerSettings {
  readonly url: string | null;
  readonly sentinels: readonly string[];
  readonly replicas: readonly string[];
  readonly readFromReplicas: boolean;
  readonly cluster: boolean;
  readonly nodes: readonly string[];
}

/** What may follow the host: the number of a database; of a Unix socket its path. */
function namesDatabase(url: URL): boolean {
  return /^\d{0,5}$/.test(databaseOf(url));
}

/** The number as it was written; empty when there is none. */
function databaseOf({ protocol, pathname, searchParams }: URL): string {
  return protocol === 'unix:' ? (searchParams.get('db') ?? '') : pathname.replace(/^\//, '');
}

/** Which settings contradict each other. */
function serverProblems(settings: ServerSettings): {
  readonly key: keyof ServerSettings;
  readonly problem: string;
}[] {
  const { url, sentinels, replicas, readFromReplicas } = settings;
  const problems = clusterProblems(settings);
  if (readFromReplicas && sentinels.length === 0)
    problems.push({ key: 'readFromReplicas', problem: 'needs sentinels; without them, list replicas' });
  if (sentinels.length > 0 && replicas.length > 0)
    problems.push({ key: 'replicas', problem: 'with sentinels, set readFromReplicas instead' });
  if (url === null || problems.length > 0) return problems;
  const primary = new URL(url);
  if (sentinels.length > 0 && primary.protocol === 'unix:')
    problems.push({ key: 'sentinels', problem: 'url must hold the name of the primary, not a socket' });
  const numbers = replicas.map((replica) => databaseOf(new URL(replica))).filter((number) => number !== '');
  if (numbers.some((number) => Number(number) !== Number(databaseOf(primary))))
    problems.push({ key: 'replicas', problem: 'expected the same number of a database as in url, or none' });
  return problems;
}

function clusterProblems({ url, sentinels, replicas, cluster, nodes }: ServerSettings) {
  const problems: { key: keyof ServerSettings; problem: string }[] = [];
  if (!cluster && nodes.length > 0)
    problems.push({ key: 'nodes', problem: 'expected cluster: true beside it' });
  if (!cluster) return problems;
  if (sentinels.length > 0) problems.push({ key: 'sentinels', problem: 'a cluster has none' });
  if (replicas.length > 0) problems.push({ key: 'replicas', problem: 'those of a cluster are not read' });
  if (url === null || !URL.canParse(url)) return problems;
  const { protocol, pathname } = new URL(url);
  if (protocol === 'unix:')
    problems.push({ key: 'url', problem: 'a cluster is reached over TCP: expected redis:// or rediss://' });
  else if (!/^\/?0*$/.test(pathname)) problems.push({ key: 'url', problem: 'a cluster has database 0 only' });
  return problems;
}
