import { z } from 'zod';
import { oauthSettings } from '../../lib/outbound/access-token.js';
import { isAllowEntry, isHostEntry } from '../../lib/outbound/address-guard.js';
import {
  basePath,
  clientSecret,
  milliseconds,
  missingReason,
  postgresUrl,
  secret,
  serverUrl,
  serviceSwitch,
  severalHostsUrl,
  tcpPort,
} from '../../lib/settings/settings.js';
import { certificateFileProblem, givenTlsFiles, tlsSettings } from '../../lib/tls.js';

const identifier = (what: string) =>
  z.string().regex(/^[a-z][a-z0-9_]{0,40}$/, `expected ${what} of lower-case letters, digits and "_"`);

/** Longest time for one attempt, in s: RabbitMQ takes back what is not acknowledged within 30 min. */
const MAX_ATTEMPT_S = 1_500;

const MAX_DELAY_S = 10 * 365 * 86_400;

/** The limits that `GET /v1/quota` reports. */
const quotaSettings = {
  maxMessageSize: z
    .int()
    .min(1)
    .max(64 * 1024 * 1024)
    .default(1_048_576)
    .describe("Largest body of a message in bytes; a destination's response is cut to it for callbacks."),
  maxTopics: z.int().min(0).max(100_000).default(20).describe('Most URL groups.'),
  maxEndpointsPerTopic: z.int().min(1).max(10_000).default(100).describe('Most endpoints of one URL group.'),
  maxSchedules: z.int().min(0).max(100_000).default(100).describe('Most schedules.'),
  maxRequestsPerDay: z
    .int()
    .default(0)
    .describe('Most messages a UTC day, over all gateways; 0 or less is no limit.'),
  maxRetries: z.int().min(0).max(1_000).default(5).describe('Most retries that a message may ask for.'),
  maxDelay: z
    .int()
    .min(0)
    .max(MAX_DELAY_S)
    .default(2_592_000)
    .describe('Longest delay of a message, in seconds.'),
  retention: z
    .int()
    .min(60)
    .max(MAX_DELAY_S)
    .default(604_800)
    .describe('How long dead letters are kept, in seconds.'),
  timeout: z
    .int()
    .min(1)
    .max(MAX_ATTEMPT_S)
    .default(300)
    .describe('Longest time for one delivery attempt, in seconds.'),
};

const MIB = 1024 * 1024;

const workflowSettings = z.strictObject({
  lazyBytes: z
    .int()
    .min(1_024)
    .max(64 * MIB)
    .default(3 * MIB)
    .describe('Longer histories of runs are left out of deliveries to SDKs that fetch them, in bytes.'),
  maxStepBytes: z
    .int()
    .min(1_024)
    .max(64 * MIB)
    .default(16 * MIB)
    .describe('Largest payload, result or error of a step, in bytes; in a batch maxBatchSize holds as well.'),
  maxRunBytes: z
    .int()
    .min(1_024)
    .max(256 * MIB)
    .default(64 * MIB)
    .describe('Of the payload and all results of a run together, in bytes.'),
  maxSteps: z.int().min(1).max(1_000_000).default(10_000).describe('Most steps of a run.'),
  maxNotes: z
    .int()
    .min(1)
    .max(10_000)
    .default(100)
    .describe('Most events that are kept for a run which does not wait for them yet.'),
  maxRetries: z
    .int()
    .min(0)
    .max(1_000)
    .default(100)
    .describe('Most retries that a run may ask for; the larger of this and queue.maxRetries holds.'),
  maxCallResponse: z
    .int()
    .min(1_024)
    .max(64 * MIB)
    .default(5 * MIB)
    .describe(
      'Largest response of a third party that a workflow calls, in bytes; a larger one is an error, not cut.',
    ),
  callTimeout: z
    .int()
    .min(1)
    .max(MAX_ATTEMPT_S)
    .default(MAX_ATTEMPT_S)
    .describe('Longest time for one attempt of such a call, in seconds.'),
});

const destinationSettings = z
  .strictObject({
    host: z
      .string()
      .refine(isHostEntry, 'expected a host name or an address, with or without :port')
      .nullable()
      .default(null)
      .describe('A destination that wants a certificate or a token of the gateway: host, or host:port.'),
    tls: tlsSettings.prefault({}).describe('Certificates for https:// to it.'),
    oauth: oauthSettings.prefault({}).describe('Tokens for it.'),
  })
  .superRefine(({ host, tls, oauth }, context) => {
    if (host === null && (oauth.tokenUrl !== null || givenTlsFiles(tls).length > 0))
      context.addIssue({ code: 'custom', path: ['host'], message: 'missing: whom is the rest for?' });
  });

/**
 * What an application with `QSTASH_DEV` looks for (`@upstash/qstash` 2.12): this token, these keys, on this port of its own
 * machine.
 */
export const DEV_MODE = {
  port: 8_080,
  token: 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=',
  currentSigningKey: 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r',
  nextSigningKey: 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs',
  allowedDestinations: ['localhost', '127.0.0.1', '::1'],
};

export const queueSettings = z
  .strictObject({
    enabled: serviceSwitch(),
    missing: missingReason('PORTICO_QUEUE_MISSING'),
    path: basePath().default('/queue').describe('Where the service is mounted.'),
    devMode: z
      .boolean()
      .default(false)
      .describe(
        'For applications with QSTASH_DEV=true: port 8080, the token and the keys that are in their SDKs, deliveries to this machine. Known to everybody, so on a loopback address alone. What is set beside it holds.',
      ),
    port: tcpPort().nullable().default(null).describe('Own port where the service is served at / as well.'),
    rabbitmqUrl: severalHostsUrl(['amqp:', 'amqps:'], 'PORTICO_RABBITMQ_URL').describe(
      'Address of RabbitMQ, such as amqp://user:password@host:5672, amqps:// for TLS; of a cluster all nodes: one:5672,two:5672,three:5672.',
    ),
    rabbitmqTls: tlsSettings.prefault({}).describe('Certificates for amqps://.'),
    databaseUrl: postgresUrl('PORTICO_DATABASE_URL').describe(
      'Address of Postgres, which remembers the messages; of a primary with standbys all hosts: one:5432,two:5432.',
    ),
    schema: identifier('a name')
      .default('portico_queue')
      .describe('Postgres schema with the tables of the queue.'),
    prefix: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,40}$/, 'expected 1 to 40 letters, digits, "_" or "-"')
      .default('portico')
      .describe('Begins the names of all exchanges and queues in RabbitMQ.'),
    poolSize: z.int().min(2).max(100).default(10).describe('Most connections to Postgres.'),
    token: clientSecret('PORTICO_QUEUE_TOKEN')
      .nullable()
      .default(null)
      .describe('Bearer token of the senders.'),
    readOnlyToken: clientSecret('PORTICO_QUEUE_READONLY_TOKEN')
      .nullable()
      .default(null)
      .describe('Bearer token that may look at everything and change nothing.'),
    currentSigningKey: secret('PORTICO_QUEUE_CURRENT_SIGNING_KEY')
      .nullable()
      .default(null)
      .describe('Signs deliveries; receivers verify with it.'),
    nextSigningKey: secret('PORTICO_QUEUE_NEXT_SIGNING_KEY')
      .nullable()
      .default(null)
      .describe('The key that receivers accept beside the current one, which it will replace.'),
    headerPrefix: z
      .enum(['Upstash', 'Service'])
      .default('Upstash')
      .describe('Prefix of the headers of deliveries whose sender used none.'),
    allowedDestinations: z
      .array(
        z
          .string()
          .refine(
            isAllowEntry,
            'expected a network (10.0.0.0/8), an address or a host name, with or without :port',
          ),
      )
      .default([])
      .meta({ env: 'PORTICO_QUEUE_ALLOWED_DESTINATIONS' })
      .describe(
        'Networks, addresses and hosts that deliveries may go to although they are private; all others must be public. With a port (localhost:3000, 10.0.0.0/8:8080, [::1]:3000) on that one alone; without, on every port, those of databases too.',
      ),
    proxyUrl: serverUrl(['http:', 'https:'])
      .nullable()
      .default(null)
      .meta({ secret: true, env: 'PORTICO_QUEUE_PROXY_URL' })
      .describe(
        'An HTTP proxy that all deliveries go through (CONNECT), such as http://user:password@proxy:3128; null: none.',
      ),
    deliveryCa: z
      .string()
      .min(1)
      .nullable()
      .default(null)
      .superRefine((path, context) => {
        const problem = certificateFileProblem(path);
        if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
      })
      .describe('Path of a PEM file: authorities that deliveries trust beside the well-known ones.'),
    destinations: z
      .array(destinationSettings)
      .max(1_000)
      .prefault([{}])
      .describe('Destinations that want a certificate or a token of the gateway.'),
    standardWebhooks: z
      .boolean()
      .default(false)
      .describe(
        'Whether deliveries are signed in the form of Standard Webhooks as well (webhook-id, -timestamp, -signature), with the same keys.',
      ),
    concurrency: z
      .int()
      .min(1)
      .max(10_000)
      .default(200)
      .describe('Deliveries in flight at once, beside those that wait for an answer.'),
    waitingConcurrency: z
      .int()
      .min(8)
      .max(20_000)
      .default(2_000)
      .describe(
        'Deliveries at once that have waited for their answer for longer than slowAfterMs; of the free places of these one destination may fill an eighth, one flow-control key a quarter.',
      ),
    destinationConcurrency: z
      .int()
      .min(1)
      .max(10_000)
      .default(100)
      .describe('Of both, how many to one destination (scheme, host and port).'),
    slowAfterMs: milliseconds(500, 50).describe(
      'From then on a delivery counts as waiting for its answer and makes room for others.',
    ),
    circuitFailures: z
      .int()
      .min(0)
      .max(100_000)
      .default(20)
      .describe(
        'Deliveries to one destination in a row that waited in vain, after which its circuit opens; 0: never.',
      ),
    circuitOpenMs: milliseconds(30_000, 100).describe(
      'How long an open circuit keeps messages back until a probe is delivered, and the next.',
    ),
    leaseMs: milliseconds(30_000, 1_000).describe(
      'After a crash, how long a message that was being delivered rests before another gateway takes it.',
    ),
    sweepIntervalMs: milliseconds(5_000, 100).describe('How often lost messages are looked for.'),
    sweepGraceMs: milliseconds(30_000, 1_000).describe('How long after its time a message counts as lost.'),
    logRetention: z
      .int()
      .min(60)
      .max(MAX_DELAY_S)
      .default(86_400)
      .describe('How long finished messages and the log of what happened to them are kept, in seconds.'),
    maxLoggedResponse: z
      .int()
      .min(0)
      .max(64 * 1024 * 1024)
      .default(16_384)
      .describe(
        "What the log keeps of the body and of the headers of a failed attempt's response, in bytes; the dead letter has all of the last one.",
      ),
    deduplicationMs: milliseconds(600_000, 1_000).describe('How long a deduplication id holds.'),
    maxBatchSize: z
      .int()
      .min(1)
      .max(104_857_600)
      .default(16_777_216)
      .describe('Largest body of a batch in bytes.'),
    stopGraceMs: milliseconds(10_000, 0).describe('How long attempts may go on when the gateway stops.'),
    ...quotaSettings,
    workflow: workflowSettings.prefault({}).describe('Durable workflows (@upstash/workflow).'),
  })
  .superRefine(({ rabbitmqUrl, rabbitmqTls }, context) => {
    if (rabbitmqUrl === null || rabbitmqUrl.startsWith('amqps:')) return;
    const message = 'the address has no TLS: expected amqps:// in rabbitmqUrl, or no file here';
    for (const name of givenTlsFiles(rabbitmqTls))
      context.addIssue({ code: 'custom', path: ['rabbitmqTls', name], message });
  })
  .transform((settings) => {
    if (!settings.devMode) return settings;
    const { port, token, currentSigningKey, nextSigningKey, allowedDestinations } = settings;
    return {
      ...settings,
      port: port ?? DEV_MODE.port,
      token: token ?? DEV_MODE.token,
      currentSigningKey: currentSigningKey ?? DEV_MODE.currentSigningKey,
      nextSigningKey: nextSigningKey ?? DEV_MODE.nextSigningKey,
      allowedDestinations:
        allowedDestinations.length === 0 ? DEV_MODE.allowedDestinations : allowedDestinations,
    };
  });

export type QueueSettings = z.output<typeof queueSettings>;
