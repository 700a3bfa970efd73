import { readFileSync } from 'node:fs';
import { HttpError } from '../../http/errors.js';
import { bindRoutes } from '../../http/route.js';
import { keepTrying, type Progress } from '../../lib/keep-trying.js';
import { LightWork } from '../../lib/light-work.js';
import { AddressGuard } from '../../lib/outbound/address-guard.js';
import type { Ways } from '../../lib/outbound/connector.js';
import { Outbound } from '../../lib/outbound/outbound.js';
import { type Database, migrate, openDatabase } from '../../lib/postgres/postgres.js';
import { givenTlsFiles } from '../../lib/tls.js';
import type { Backend, ServiceInstance, ServiceRuntime } from '../service.js';
import { AccessTokens } from './delivery/access-tokens.js';
import { openDelivery } from './delivery.js';
import type { QueueDeps } from './deps.js';
import { DestinationPlaces } from './destinations/destination-places.js';
import { formatError } from './errors.js';
import { IntakeConnections } from './intake/intake-connections.js';
import { RefusedMessages } from './intake/refused-messages.js';
import { DailyUsage } from './intake/usage.js';
import { QueueMetrics } from './metrics.js';
import { mountOf } from './mount.js';
import { FlowControls } from './order/flow-controls.js';
import { HeldMessages } from './order/held-messages.js';
import { OrderedQueues } from './order/ordered-queues.js';
import { QueueDeletions } from './order/queue-deletions.js';
import { BrokerLink, type Channel, type ConfirmChannel } from './rabbitmq/client.js';
import { declareAll } from './rabbitmq/declarations.js';
import { TicketPublisher } from './rabbitmq/publisher.js';
import { TicketSender } from './rabbitmq/ticket-sender.js';
import { describeTopology, type Topology } from './rabbitmq/topology.js';
import { routes } from './routes.js';
import { Schedules } from './schedules/schedules.js';
import type { QueueSettings } from './settings.js';
import { BacklogCounter } from './store/backlog-counter.js';
import { DeadLetterStore } from './store/dead-letter-store.js';
import { EventLog } from './store/event-log.js';
import { EventPartitions } from './store/event-partitions.js';
import { ListingConnections } from './store/listing-connections.js';
import { MessageIndex } from './store/message-index.js';
import { MessageUpkeep } from './store/message-upkeep.js';
import { queueMigrations } from './store/migrations.js';
import { Purge } from './store/purge.js';
import { SigningKeys } from './store/signing-keys.js';
import { MessageStore } from './store/store.js';
import { UrlGroups } from './store/url-groups.js';
import { DeadRunRows } from './workflow/dead-run-rows.js';
import { DeadRuns } from './workflow/dead-runs.js';
import { OpenRunCounter } from './workflow/open-run-counter.js';
import { RunBatchRows } from './workflow/run-batch-rows.js';
import { RunBatches } from './workflow/run-batches.js';
import { RunChanges } from './workflow/run-changes.js';
import { RunMetrics } from './workflow/run-metrics.js';
import { RunOutcomes } from './workflow/run-outcomes.js';
import { RunRecords } from './workflow/run-record.js';
import { RunRows } from './workflow/run-rows.js';
import { RunSearch } from './workflow/run-search.js';
import { Runs } from './workflow/runs.js';
import { WaitRows } from './workflow/wait-rows.js';
import { Waits } from './workflow/waits.js';

/** A statement that runs longer is ended, in ms: a sender gets its 503 within 2 s. */
const STATEMENT_MS = 1_300;
const CONNECT_MS = 1_500;
const REQUEST_MS = 10_000;

/**
 * Messages come and go faster than Postgres' statistics: a plan made while the table was empty reads all of it for each
 * statement when it is not any more. Every statement of the queue finds its rows by an index.
 */
const PLANNING = { jit: 'off', enable_seqscan: 'off', enable_hashjoin: 'off', enable_mergejoin: 'off' };

/** Connects the queue's parts. They are released in the opposite order: deliveries end first, connections last. */
export function openQueue(config: QueueSettings, runtime: ServiceRuntime): readonly ServiceInstance[] {
  const { log, lifecycle } = runtime;
  const database = openStoreDatabase(config, runtime, () => migrated.redo());
  const topology = describeTopology(config.prefix);
  const declare = oneAtATime((channel: Channel) => declareAll(channel, topology));
  const { link, publisher } = openPublishing(config, runtime, topology, declare);
  const guard = new AddressGuard(config.allowedDestinations);
  const ways = waysOf(config);
  const outbound = new Outbound(guard, ways);
  lifecycle.onStop('queue connections to destinations', () => outbound.close());
  const tokens = new AccessTokens(config.destinations, ways, runtime.now);
  lifecycle.onStop('queue access tokens', () => tokens.close());
  const parts = openParts(config, runtime, database, publisher);
  const stopping = new AbortController();
  const prepare = async () => {
    await migrate(database, config.schema, queueMigrations(config.schema), stopping.signal);
    // before the first entry: one of today in the default partition would forbid today's own
    await parts.partitions.make(runtime.now());
    await parts.keys.refresh();
  };
  const migrated: Progress = keepTrying(prepare, { name: 'queue schema', log, lifecycle });
  const metrics = new QueueMetrics(
    runtime.metrics,
    () => parts.places.stats(),
    () => parts.backlog.backlog,
  );
  const deps = depsOf(config, runtime, guard, parts, metrics);
  const runs = new RunOutcomes({
    ...deps.workflow,
    config,
    store: parts.store,
    database: database.patient,
    now: runtime.now,
  });
  lifecycle.onStop('queue start', () => stopping.abort());
  // tickets are of no use before the tables are there
  void migrated.success.then(() => {
    if (stopping.signal.aborted) return;
    const { accept, schedules, heldMessages, usage } = deps;
    const { onAccepted } = accept;
    const scheduler = { schedules, address: deps, intake: accept, heldMessages, usage, onAccepted, log };
    openDelivery({
      ...parts,
      config,
      runtime,
      topology,
      declare,
      database,
      outbound,
      tokens,
      metrics,
      scheduler,
      runs,
    });
  });
  return [
    {
      ...mountOf(config),
      routes: bindRoutes(routes, deps),
      formatError,
      bodyLimit: config.maxMessageSize,
      bodyLimits: {
        'queue.batch': config.maxBatchSize,
        'queue.batchTrigger': config.maxBatchSize,
        ...workflowBodyLimits(config),
      },
      timeoutMs: REQUEST_MS,
      backends: [rabbitmqBackend(link, topology), postgresBackend(database, migrated)],
    },
  ];
}

/** How destinations are reached. */
function waysOf({ proxyUrl, deliveryCa, destinations }: QueueSettings): Ways {
  return {
    proxy: proxyUrl === null ? undefined : new URL(proxyUrl),
    authorities: deliveryCa === null ? undefined : readFileSync(deliveryCa, 'utf8'),
    hosts: destinations.flatMap(({ host, tls }) =>
      host === null || givenTlsFiles(tls).length === 0 ? [] : [{ host, tls }],
    ),
  };
}

/** Results of steps may be larger than messages; those of a publish are looked at again when it is read. */
function workflowBodyLimits({ maxMessageSize, workflow }: QueueSettings): Record<string, number> {
  const step = Math.max(maxMessageSize, workflow.maxStepBytes);
  return {
    'queue.publish': step,
    'queue.trigger': step,
    'queue.endWorkflowRun': step,
    'queue.wait': step,
    'queue.notify': step,
  };
}

/** What holds no timer and no socket of its own. */
function openParts(
  config: QueueSettings,
  { log, now }: ServiceRuntime,
  database: Database,
  publisher: TicketPublisher,
) {
  const { schema, sweepGraceMs: graceMs } = config;
  const store = new MessageStore({ ...config, database, graceMs });
  const queues = new OrderedQueues(database, schema, graceMs);
  const flows = new FlowControls(database, schema, graceMs);
  const sender = new TicketSender(publisher);
  const light = new LightWork();
  const listings = new ListingConnections(database, config.poolSize, light);
  const atOnce = Math.max(1, Math.floor(config.poolSize / 2));
  const heldMessages = new HeldMessages({ queues, flows, sender, log, atOnce });
  const [current, next] = [config.currentSigningKey as string, config.nextSigningKey as string];
  return {
    database,
    listings,
    intakeConnections: new IntakeConnections(database, config.poolSize, light),
    publisher,
    store,
    queues,
    flows,
    sender,
    heldMessages,
    places: new DestinationPlaces({
      active: config.concurrency,
      waiting: config.waitingConcurrency,
      perDestination: config.destinationConcurrency,
      slowAfterMs: config.slowAfterMs,
      circuitFailures: config.circuitFailures,
      circuitOpenMs: config.circuitOpenMs,
      recall: (tickets) => void heldMessages.send(tickets.map((ticket) => ({ ...ticket, delayMs: 0 }))),
      now: () => performance.now(),
    }),
    events: new EventLog(listings, schema, config.logRetention * 1_000),
    partitions: new EventPartitions(database, schema, config.logRetention * 1_000),
    keys: new SigningKeys(database, schema, { current, next }),
    usage: new DailyUsage(database, schema, config.maxRequestsPerDay, now, log),
    groups: new UrlGroups(database, schema, config),
    deletions: new QueueDeletions(database, schema),
    index: new MessageIndex(database, schema, graceMs),
    upkeep: new MessageUpkeep(database, schema, graceMs),
    purge: new Purge(
      database,
      schema,
      { finishedMs: config.logRetention * 1_000, deadMs: config.retention * 1_000 },
      log,
    ),
    deadLetters: new DeadLetterStore(database, listings, schema),
    backlog: new BacklogCounter(database, schema),
    openRuns: new OpenRunCounter(database, schema),
    schedules: new Schedules(database, schema, config.maxSchedules),
  };
}

function depsOf(
  config: QueueSettings,
  { log, lifecycle, now, metrics: registry, tracer }: ServiceRuntime,
  guard: AddressGuard,
  parts: ReturnType<typeof openParts>,
  metrics: QueueMetrics,
): QueueDeps {
  const refusedMessages = new RefusedMessages({
    cancel: (ids) => parts.store.refuse(ids),
    forMs: config.sweepGraceMs * 0.8,
    log,
  });
  lifecycle.onStop('queue refused messages', () => refusedMessages.stop());
  const onAccepted = (count: number) => metrics.accepted(count);
  const { deduplicationMs } = config;
  const accept = { ...parts, refusedMessages, onAccepted, deduplicationMs, tracer };
  const counter = new RunMetrics(registry, () => parts.openRuns.open);
  const rows = new RunRows(config.schema, counter);
  const changes = new RunChanges({ ...parts, intake: accept, log });
  const { maxSteps, maxRunBytes, lazyBytes } = config.workflow;
  const limits = { graceMs: config.sweepGraceMs, maxSteps, maxRunBytes, lazyBytes };
  const batchRows = new RunBatchRows(config.schema, counter, limits);
  const batches = new RunBatches({ ...parts, config, batchRows, changes, now });
  const runs = new Runs({ ...parts, config, guard, rows, changes, batches, now, onAccepted });
  const waitRows = new WaitRows(config.schema);
  const waits = new Waits({ ...parts, config, guard, rows, waitRows, changes, now });
  const deadRunRows = new DeadRunRows(config.schema);
  const dead = new DeadRuns({ ...parts, config, guard, rows, deadRunRows, changes, now });
  const search = new RunSearch(parts.listings, config.schema);
  const records = new RunRecords(parts.database, config.schema, config.logRetention * 1_000);
  return {
    ...parts,
    config,
    guard,
    now,
    log,
    accept,
    workflow: { rows, batchRows, changes, runs, waits, search, records, dead },
  };
}

function openStoreDatabase(
  config: QueueSettings,
  { log, lifecycle, tracer }: ServiceRuntime,
  onMissingTable: () => void,
): Database {
  return openDatabase({
    url: config.databaseUrl as string,
    poolSize: config.poolSize,
    statementTimeoutMs: STATEMENT_MS,
    connectTimeoutMs: CONNECT_MS,
    applicationName: 'portico queue',
    settings: PLANNING,
    onMissingTable,
    log,
    lifecycle,
    tracer,
  });
}

type Declare = (channel: Channel) => Promise<void>;

function openPublishing(
  config: QueueSettings,
  { log, lifecycle }: ServiceRuntime,
  topology: Topology,
  declare: Declare,
) {
  const link: BrokerLink = new BrokerLink({
    url: config.rabbitmqUrl as string,
    tls: config.rabbitmqTls,
    name: 'publishing',
    log,
    lifecycle,
    onUp: async (channel: ConfirmChannel) => {
      await declare(channel);
      publisher.attach(channel);
    },
    onDown: () => publisher.detach(),
  });
  const publisher = new TicketPublisher(link, topology.names, (reason) => link.restart(reason));
  return { link, publisher };
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
      if (!migrated.done)
        throw new HttpError('backend_unavailable', migrated.error?.message ?? 'the tables are not there yet');
    },
  };
}
