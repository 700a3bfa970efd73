import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { clientSecret, milliseconds, tcpPort } from '../lib/settings/settings.js';
import { tlsProblems } from '../lib/tls.js';

/** What a browser sends as `Origin`: nothing behind the host, a usual port left out. */
const origin = () =>
  z
    .string()
    .refine(
      (text) =>
        text === '*' ||
        (/^https?:/.test(text)
          ? !text.includes('*') && URL.canParse(text) && new URL(text).origin === text
          : /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+(:\d+)?$/.test(text)),
      { error: 'expected an origin such as https://app.example (nothing behind the host and port), or *' },
    );

/** An address, a network, or one of the names of `proxy-addr`. */
const trustedProxy = () =>
  z.string().refine((text) => isNetworkOrName(text), {
    error: 'expected an address, a network such as 10.0.0.0/8, loopback, linklocal or uniquelocal',
  });

function isNetworkOrName(text: string): boolean {
  if (/^(loopback|linklocal|uniquelocal)$/.test(text) || isIP(text) > 0) return true;
  return isIP(text.split('/', 1)[0] as string) > 0 && ipaddr.isValidCIDR(text);
}

/** What a line of the access log may hold. */
const accessField = z.enum([
  'requestId',
  'method',
  'operation',
  'status',
  'durationMs',
  'principal',
  'client',
  'requestBytes',
  'replyBytes',
  'host',
  'userAgent',
  'httpVersion',
]);

export type AccessField = z.output<typeof accessField>;

const accessLog = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'A line of the log for each request, whatever log.level is. None holds a path, a query, a token or a body.',
    ),
  fields: z
    .array(accessField)
    .min(1)
    .default([
      'requestId',
      'method',
      'operation',
      'status',
      'durationMs',
      'principal',
      'client',
      'requestBytes',
      'replyBytes',
    ])
    .describe(`What a line holds, in this order: of ${accessField.options.join(', ')}.`),
  sample: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe(
      'Which share of the requests is logged, from 0 to 1. Those that end with 500 and above are always.',
    ),
  except: z
    .array(z.string())
    .default(['operations.livez', 'operations.readyz', 'operations.metrics'])
    .describe('Operation ids that are left out, unless they end with 500 and above.'),
});

const compression = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'Whether replies are packed (br, gzip) for clients that accept it. It spares the network and costs CPU time; most clients accept it unasked. Streams never are.',
    ),
  minBytes: z
    .int()
    .min(1_024)
    .default(16 * 1024)
    .describe('Smaller replies go out as they are.'),
});

const pemFile = () => z.string().min(1).nullable().default(null);

const serverTls = z
  .strictObject({
    cert: pemFile().describe(
      'Path of a PEM file: certificate of the gateway and those between it and its authority. With it, every port speaks TLS. null: none does. SIGHUP has the files read again.',
    ),
    key: pemFile().describe('Path of a PEM file: its key, without a passphrase.'),
    clientCa: pemFile().describe(
      'Path of a PEM file: authorities of the certificates that clients must show beside their tokens; not on operationsPort, which must be set. null: none is asked for.',
    ),
    minVersion: z
      .enum(['TLSv1.2', 'TLSv1.3'])
      .default('TLSv1.2')
      .describe('Oldest version of TLS that is spoken.'),
  })
  .superRefine(({ cert, key, clientCa }, context) => {
    const problems = tlsProblems({ cert, key, ca: clientCa });
    for (const { key: name, problem } of problems)
      context.addIssue({ code: 'custom', path: [name === 'ca' ? 'clientCa' : name], message: problem });
    if (cert === null && clientCa !== null)
      context.addIssue({ code: 'custom', path: ['clientCa'], message: 'expected cert and key beside it' });
  });

/** The section `http` of the configuration. */
export const httpSettings = z.strictObject({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address to listen on. Anything but a loopback address needs strong tokens.'),
  port: z.int().min(0).max(65_535).default(8070).describe('Port of the gateway; 0 takes a free one.'),
  workers: z
    .int()
    .min(1)
    .max(256)
    .default(1)
    .describe(
      'Processes that serve the same ports. Limits (requests, connections to backends, deliveries) hold for each of them.',
    ),
  maxInFlight: z
    .int()
    .min(1)
    .default(10_000)
    .describe('Requests worked on at once; one more is answered 503 with Retry-After.'),
  maxHeaderBytes: z
    .int()
    .min(8_192)
    .max(64 * 1024 * 1024)
    .default(256 * 1024)
    .describe(
      'Request line and headers together, in bytes: bounds arguments in a path and forwarded headers.',
    ),
  bodyIdleTimeoutMs: milliseconds(10_000).describe('A body that sends nothing for so long is answered 408.'),
  replyIdleTimeoutMs: milliseconds(60_000).describe(
    'A client that takes nothing of its reply for so long is cut off.',
  ),
  replyBufferBytes: z
    .int()
    .min(1024 * 1024)
    .max(64 * 1024 * 1024 * 1024)
    .default(256 * 1024 * 1024)
    .describe(
      'Bytes of replies that may wait for their clients, of all services together: half of it for one token, a quarter for one connection. A reply of more than 4 KiB beyond it is answered 503 with Retry-After.',
    ),
  streamBufferBytes: z
    .int()
    .min(1_024)
    .max(1024 * 1024 * 1024)
    .default(1024 * 1024)
    .describe(
      'A client of a stream is cut off when more than so many bytes wait for it and another piece comes; when replyBufferBytes are used up, 64 KiB.',
    ),
  requestTimeoutMs: milliseconds(300_000).describe(
    'Line, headers and body of a request must have arrived by then (408).',
  ),
  keepAliveTimeoutMs: milliseconds(75_000).describe(
    'Idle time after which a kept connection is closed; longer than that of a proxy in front.',
  ),
  stopTimeoutMs: milliseconds(15_000).describe(
    'Requests in flight get so long to end when the gateway stops.',
  ),
  cors: z
    .strictObject({
      origins: z
        .array(origin())
        .max(1_000)
        .default([])
        .describe('Origins whose pages may use the services, such as https://app.example; * for all.'),
    })
    .prefault({}),
  trustedProxies: z
    .array(trustedProxy())
    .default([])
    .describe(
      'Proxies whose X-Forwarded-For tells who the client is, for logs and the caller of a message: addresses, networks such as 10.0.0.0/8, loopback, linklocal, uniquelocal. Empty: the peer is the client.',
    ),
  tls: serverTls.prefault({}),
  compression: compression.prefault({}).meta({ reload: true }),
  accessLog: accessLog.prefault({}).meta({ reload: true }),
  addressLimit: z
    .strictObject({
      requests: z
        .int()
        .min(1)
        .nullable()
        .default(null)
        .describe(
          'Requests that one address may send in a window (429), to each process; null: no limit. Behind a proxy, see trustedProxies.',
        ),
      seconds: z.int().min(1).max(86_400).default(60).describe('Length of the window.'),
    })
    .prefault({}),
  metricsToken: clientSecret('PORTICO_METRICS_TOKEN')
    .nullable()
    .default(null)
    .describe(
      'Bearer token for /metrics and for the reasons in /readyz. null: no reasons; /metrics is open on a loopback address and on operationsPort, refused elsewhere.',
    ),
  operationsPort: tcpPort()
    .nullable()
    .default(null)
    .describe('Own port for /livez, /readyz and /metrics, which the main port then does not serve.'),
});

export type HttpSettings = z.output<typeof httpSettings>;
