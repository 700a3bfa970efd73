import { HttpError } from '../../http/errors.js';
import { bindRoutes } from '../../http/route.js';
import { AddressGuard } from '../../lib/address-guard.js';
import { keepTrying, type Progress } from '../../lib/keep-trying.js';
import { Outbound } from '../../lib/outbound.js';
import { type Database, migrate, openDatabase } from '../../lib/postgres.js';
import type { Backend, ServiceInstance, ServiceRuntime } from '../service.js';
import { Abandoned } from './abandoned.js';
import { attemptDelivery } from './attempt.js';
import { BrokerLink, type Channel, type ConfirmChannel } from './client.js';
import { DestinationPlaces } from './destination-places.js';
import { Dispatcher } from './dispatcher.js';
import { formatError } from './errors.js';
import { LeaseKeeper } from './lease-keeper.js';
import { queueMigrations } from './migrations.js';
import { TokenPublisher } from './publisher.js';
import { queueRoutes } from './routes.js';
import type { QueueConfig } from './schemas.js';
import { signer } from './signature.js';
import { MessageStore } from './store.js';
import { Sweeper } from './sweeper.js';
import { declareTopology, describeTopology, type Topology } from './topology.js';
import { Worker } from './worker.js';

/** A statement that runs longer is ended, in ms: a sender gets its 503 within 2 s. */
const STATEMENT_MS = 1_300;
const CONNECT_MS = 1_500;
const REQUEST_MS = 10_000;

type Opened = Omit<ServiceInstance, 'name' | 'path' | 'port' | 'auth'>;

/** Connects the queue's parts. They are released in the opposite order: deliveries end first, connections last. */
export function openQueue(config: QueueConfig, runtime: ServiceRuntime): Opened {
  const { log, lifecycle, now } = runtime;
  const guard = new AddressGuard(config.allowedDestinations);
  const database = openStoreDatabase(config, runtime);
  const migrated = keepTrying(() => migrate(database, config.schema, queueMigrations(config.schema)), {
    name: 'queue schema',
    log,
    lifecycle,
  });
  const store = new MessageStore({ ...config, database, graceMs: config.sweepGraceMs });
  const topology = describeTopology(config.prefix);
  const declare = oneAtATime((channel: Channel) => declareTopology(channel, topology));
  const publishing = openPublishing(config, runtime, topology, declare);
  const outbound = new Outbound(guard);
  lifecycle.onStop('queue connections to destinations', () => outbound.close());
  const abandoned = new Abandoned({
    cancel: (ids) => store.cancel(ids),
    forMs: config.sweepGraceMs * 0.8,
    log,
  });
  lifecycle.onStop('queue refused messages', () => abandoned.stop());
  let stopped = false;
  lifecycle.onStop('queue start', () => {
    stopped = true;
  });
  // tokens are of no use before the tables are there
  void migrated.success.then(() => {
    const { publisher } = publishing;
    if (!stopped) openDelivery({ config, runtime, topology, declare, store, database, outbound, publisher });
  });
  return {
    routes: bindRoutes(queueRoutes, {
      config,
      guard,
      now,
      accept: { store, publisher: publishing.publisher, abandoned },
    }),
    formatError,
    bodyLimit: config.maxMessageSize,
    timeoutMs: REQUEST_MS,
    backends: [rabbitmqBackend(publishing.link, topology), postgresBackend(database, migrated)],
  };
}

function openStoreDatabase(config: QueueConfig, { log, lifecycle }: ServiceRuntime): Database {
  return openDatabase({
    url: config.databaseUrl as string,
    poolSize: config.poolSize,
    statementTimeoutMs: STATEMENT_MS,
    connectTimeoutMs: CONNECT_MS,
    applicationName: 'portico queue',
    log,
    lifecycle,
  });
}

type Declare = (channel: Channel) => Promise<void>;

function openPublishing(
  config: QueueConfig,
  { log, lifecycle }: ServiceRuntime,
  topology: Topology,
  declare: Declare,
) {
  const link: BrokerLink = new BrokerLink({
    url: config.rabbitmqUrl as string,
    name: 'publishing',
    log,
    lifecycle,
    onUp: async (channel: ConfirmChannel) => {
      await declare(channel);
      publisher.attach(channel);
    },
    onDown: () => publisher.detach(),
  });
  const publisher = new TokenPublisher(link, topology.names, (reason) => link.restart(reason));
  return { link, publisher };
}

interface DeliveryParts {
  readonly config: QueueConfig;
  readonly runtime: ServiceRuntime;
  readonly topology: Topology;
  readonly declare: Declare;
  readonly store: MessageStore;
  readonly database: Database;
  readonly outbound: Outbound;
  readonly publisher: TokenPublisher;
}

function openDelivery(parts: DeliveryParts): void {
  const { config, runtime, topology, declare, store, database, outbound, publisher } = parts;
  const { log, lifecycle, now } = runtime;
  const tools = {
    outbound,
    sign: signer(config.currentSigningKey as string, now),
    timeoutMs: config.timeout * 1_000,
    maxResponseBytes: config.maxMessageSize,
  };
  const leases = new LeaseKeeper((held) => store.renew(held), config.leaseMs, log);
  lifecycle.onStop('queue leases', () => leases.stop());
  const worker = new Worker({
    store,
    publisher,
    leases,
    places: new DestinationPlaces({
      most: config.destinationConcurrency,
      // these must leave most of the other places to the others
      mostWaiting: Math.floor(config.concurrency / 8),
      now: () => performance.now(),
    }),
    deliver: (message, signal) => attemptDelivery(message, signal, tools),
    now,
    log,
  });
  const dispatcher = new Dispatcher({
    names: topology.names,
    concurrency: config.concurrency,
    process: (token, signal) => worker.process(token, signal),
    mend: (reason) => link.restart(reason),
    checkStore: () => database.check(),
    log,
  });
  const link: BrokerLink = new BrokerLink({
    url: config.rabbitmqUrl as string,
    name: 'consuming',
    log,
    lifecycle,
    onUp: async (channel) => {
      await declare(channel);
      await dispatcher.attach(channel);
    },
    onDown: () => dispatcher.detach(),
  });
  const sweeper = new Sweeper({
    store,
    publisher,
    backlog: async () => (await link.channel?.checkQueue(topology.names.work))?.messageCount,
    intervalMs: config.sweepIntervalMs,
    ages: { deliveredMs: config.keepDeliveredMs, deadMs: config.retention * 1_000 },
    log,
  });
  lifecycle.onStop('queue sweeper', () => sweeper.stop());
  lifecycle.onStop('queue deliveries', () => dispatcher.stop(config.stopGraceMs), config.stopGraceMs + 5_000);
}

/** Two connections that create the same queues at the same moment only hinder each other. */
function oneAtATime<T>(work: (input: T) => Promise<void>): (input: T) => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return (input) => {
    const next = last.then(() => work(input));
    last = next.catch(() => undefined);
    return next;
  };
}

function rabbitmqBackend(link: BrokerLink, { names }: Topology): Backend {
  return {
    name: 'rabbitmq',
    check: async () => {
      if (link.channel === undefined) throw new HttpError('backend_unavailable', 'not connected');
      if (link.blocked !== undefined)
        throw new HttpError('backend_unavailable', 'takes no messages (resource alarm)');
      await link.channel.checkExchange(names.delivery);
    },
  };
}

function postgresBackend(database: Database, migrated: Progress): Backend {
  return {
    name: 'postgres',
    check: async () => {
      await database.check();
      if (!migrated.done) throw new HttpError('backend_unavailable', 'the tables are not there yet');
    },
  };
}
