import { ByteBudget } from '../../lib/byte-budget.js';
import type { Outbound } from '../../lib/outbound/outbound.js';
import type { Database } from '../../lib/postgres/postgres.js';
import type { ServiceRuntime } from '../service.js';
import type { AccessTokens } from './delivery/access-tokens.js';
import { type AttemptLimits, attemptDelivery, NotAttemptedError, timeoutOf } from './delivery/attempt.js';
import { DeadLetterer } from './delivery/dead-letterer.js';
import { Dispatcher } from './delivery/dispatcher.js';
import { LeaseKeeper } from './delivery/lease-keeper.js';
import type { RunDeliveries } from './delivery/run-deliveries.js';
import { deliverySigner } from './delivery/signature.js';
import { tracedDelivery } from './delivery/traced-delivery.js';
import { Worker } from './delivery/worker.js';
import type { DestinationPlaces } from './destinations/destination-places.js';
import type { ClaimedMessage } from './message/message.js';
import type { QueueMetrics } from './metrics.js';
import type { HeldMessages } from './order/held-messages.js';
import type { OrderedQueues } from './order/ordered-queues.js';
import type { QueueDeletions } from './order/queue-deletions.js';
import { Sweeper } from './order/sweeper.js';
import { BrokerLink, type Channel } from './rabbitmq/client.js';
import type { TicketPublisher } from './rabbitmq/publisher.js';
import type { TicketSender } from './rabbitmq/ticket-sender.js';
import type { Topology } from './rabbitmq/topology.js';
import { Scheduler, type SchedulerTools } from './schedules/scheduler.js';
import type { QueueSettings } from './settings.js';
import type { BacklogCounter } from './store/backlog-counter.js';
import type { EventPartitions } from './store/event-partitions.js';
import type { MessageUpkeep } from './store/message-upkeep.js';
import type { Purge } from './store/purge.js';
import type { SigningKeys } from './store/signing-keys.js';
import type { MessageStore } from './store/store.js';
import type { OpenRunCounter } from './workflow/open-run-counter.js';

/**
 * Response bodies that are kept while they arrive and until their outcome is written, in bytes: as many attempts may be
 * under way as would hold gigabytes.
 */
const RESPONSE_BYTES = 128 * 1024 * 1024;

export interface DeliveryParts {
  readonly config: QueueSettings;
  readonly runtime: ServiceRuntime;
  readonly topology: Topology;
  readonly declare: (channel: Channel) => Promise<void>;
  readonly store: MessageStore;
  readonly upkeep: MessageUpkeep;
  readonly queues: OrderedQueues;
  readonly deletions: QueueDeletions;
  readonly purge: Purge;
  readonly database: Database;
  readonly outbound: Outbound;
  readonly tokens: AccessTokens;
  readonly publisher: TicketPublisher;
  readonly sender: TicketSender;
  readonly heldMessages: HeldMessages;
  readonly places: DestinationPlaces;
  readonly partitions: EventPartitions;
  readonly keys: SigningKeys;
  readonly metrics: QueueMetrics;
  readonly scheduler: SchedulerTools;
  readonly runs: RunDeliveries;
  readonly openRuns: OpenRunCounter;
  readonly backlog: BacklogCounter;
}

/** Starts what works by itself: deliveries, dead letters, schedules, the sweep. They are released in the opposite order. */
export function openDelivery(parts: DeliveryParts): void {
  const { config, runtime, topology, database, heldMessages } = parts;
  const { log, lifecycle } = runtime;
  const { names } = topology;
  lifecycle.onStop('queue held messages', () => heldMessages.stop());
  lifecycle.onStop('queue places', () => parts.places.stop());
  const { usage } = parts.scheduler;
  const charge = (count: number) => {
    usage
      .charge(count)
      .catch((err: unknown) => log.warn({ err }, 'queue: messages of the day were not counted'));
  };
  const worker = openWorker(parts, charge);
  const deadLetterer = new DeadLetterer({ ...parts, charge, now: runtime.now, log });
  const dispatcher = new Dispatcher({
    sources: [
      { queue: names.work, process: (...all) => worker.process(...all) },
      { queue: names.dead, process: (ticket, signal) => deadLetterer.process(ticket, signal) },
    ],
    unrouted: names.unrouted,
    concurrency: config.concurrency,
    reconnect: (reason) => link.restart(reason),
    deadLetter: (ticket) => parts.sender.deadLetter(ticket),
    again: (ticket, signal) => parts.sender.send(ticket, 0, signal),
    checkStore: () => database.check(),
    log,
  });
  const link: BrokerLink = new BrokerLink({
    url: config.rabbitmqUrl as string,
    tls: config.rabbitmqTls,
    name: 'consuming',
    log,
    lifecycle,
    onUp: async (channel) => {
      await parts.declare(channel);
      await dispatcher.attach(channel);
      sweeper.reconnected();
    },
    onDown: () => dispatcher.detach(),
  });
  const sweeper = openSweeper(parts, () => link.channel);
  const scheduler = new Scheduler(parts.scheduler);
  lifecycle.onStop('queue schedules', () => scheduler.stop());
  lifecycle.onStop('queue deliveries', () => dispatcher.stop(config.stopGraceMs), config.stopGraceMs + 5_000);
}

function openWorker(parts: DeliveryParts, charge: (count: number) => void): Worker {
  const { config, runtime, store, outbound, keys, runs } = parts;
  const { log, lifecycle, now } = runtime;
  const tools = {
    outbound,
    sign: deliverySigner(keys, now, config),
    tokens: parts.tokens,
    limits: (message: ClaimedMessage) => limitsOf(message, config),
    responses: new ByteBudget(RESPONSE_BYTES),
  };
  const leases = new LeaseKeeper((held) => store.renew(held), config.leaseMs, log);
  lifecycle.onStop('queue leases', () => leases.stop());
  return new Worker({
    ...parts,
    charge,
    leases,
    timeoutMs: (message) => timeoutOf(message, limitsOf(message, config)),
    deliver: async (message, signal) => {
      const dressed = await runs.dressed(message).catch((error: unknown) => {
        throw new NotAttemptedError(error);
      });
      const { tracer } = runtime;
      return tracer === undefined
        ? attemptDelivery(dressed, signal, tools)
        : tracedDelivery(tracer, dressed, (traced) => attemptDelivery(traced, signal, tools));
    },
    now,
    log,
  });
}

/**
 * A third party that a workflow calls may take longer and answer more than the destination of a message. A workflow may
 * fail with as much as a step may hold: the SDKs cannot read half of an error, which is JSON.
 */
function limitsOf(
  { run }: ClaimedMessage,
  { timeout, maxMessageSize, workflow }: QueueSettings,
): AttemptLimits {
  if (run?.role === 'call')
    return { timeoutMs: workflow.callTimeout * 1_000, maxResponseBytes: workflow.maxCallResponse };
  const isOfWorkflow = run?.role === 'step' || run?.role === 'callback';
  const maxResponseBytes = isOfWorkflow ? Math.max(maxMessageSize, workflow.maxStepBytes) : maxMessageSize;
  return { timeoutMs: timeout * 1_000, maxResponseBytes };
}

function openSweeper(parts: DeliveryParts, channel: () => Channel | undefined): Sweeper {
  const { config, runtime, topology, keys, partitions, openRuns, backlog } = parts;
  const sweeper = new Sweeper({
    ...parts,
    chores: [
      async () => {
        await keys.refresh();
      },
      () => partitions.keep(runtime.now()),
      () => openRuns.step(),
      // the same for all workers
      ...((runtime.worker?.index ?? 0) === 0 ? [() => backlog.step()] : []),
    ],
    backlog: async () => (await channel()?.checkQueue(topology.names.work))?.messageCount,
    intervalMs: config.sweepIntervalMs,
    log: runtime.log,
  });
  runtime.lifecycle.onStop('queue sweeper', () => sweeper.stop());
  return sweeper;
}
