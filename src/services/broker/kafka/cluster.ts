import { HttpError } from '../../../http/errors.js';
import { type Address, parseAddress } from '../../../lib/address.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import { refusalOf, unavailable } from '../errors.js';
import { Connections } from './connections.js';
import type { KafkaConnection, OwnCall } from './kafka-connection.js';
import type { Api } from './kafkajs-internals.js';
import type { KafkaSecurity } from './sasl.js';
import { type MetadataReply, type Topic, topicsOf } from './topics.js';
import { withSecond } from './waits.js';

/**
 * What a connection is for. A broker answers one request after the other on a connection, so those that may wait
 * long (`poll`, and `produce` for its replicas) do not share one with those that must be quick.
 */
export type Lane = 'control' | 'produce' | 'fetch' | `poll ${number}`;

/** A question that any broker answers gets so long, in ms: they answer it from memory, but may be far away. */
const METADATA_MS = 3_000;
/** When the one that was asked first is silent for so long, another one is asked beside it, in ms. */
const SECOND_MS = 1_000;
/** What is known of a topic is asked again when older, in ms; a partition that moved or grew is noticed by error before. */
const TOPIC_AGE_MS = 25_000;
/** Asked about more topics at once, Kafka is asked for all: it looks up 100,000 names for longer than `METADATA_MS`. */
const MANY_TOPICS = 1_000;
/** kafkajs sends an empty list as null, which asks for all. */
const ALL_TOPICS: readonly string[] = [];

export interface ClusterOptions {
  readonly brokers: readonly string[];
  readonly security: KafkaSecurity;
  readonly connectTimeoutMs: number;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
  readonly now: () => number;
}

interface KnownTopic {
  topic: Topic;
  at: number;
}

/** The brokers, the connections to them and what they know of topics. Connects on first use and again after a loss. */
export class Cluster {
  private readonly seeds: readonly Address[];
  private readonly nodes = new Map<number, Address>();
  private readonly connections: Connections;
  private readonly known = new Map<string, KnownTopic>();
  private wanted = new Set<string>();
  private refreshing: Promise<Map<string, Topic>> | undefined;
  private everything: Promise<Topic[]> | undefined;

  constructor(private readonly options: ClusterOptions) {
    this.seeds = options.brokers.map(parseAddress);
    this.connections = new Connections(options);
    options.lifecycle.onStop('kafka connections', () => this.connections.close());
  }

  /** Topics by name, without those that do not exist. @param fresh ask Kafka even when all are known */
  async topics(names: readonly string[], fresh = false): Promise<Map<string, Topic>> {
    const found = new Map<string, Topic>();
    const oldest = this.options.now() - TOPIC_AGE_MS;
    for (const name of names) {
      const known = this.known.get(name);
      if (known !== undefined && known.at > oldest) found.set(name, known.topic);
    }
    if (!fresh && found.size === new Set(names).size) return found;
    const refreshed = await this.refresh(names);
    return new Map(
      names.flatMap((name) => (refreshed.has(name) ? [[name, refreshed.get(name) as Topic]] : [])),
    );
  }

  /** The same for topics that must exist. @throws HttpError 404 */
  async existing(names: readonly string[]): Promise<Map<string, Topic>> {
    const topics = await this.topics(names);
    const unknown = names.find((name) => !topics.has(name));
    if (unknown !== undefined) throw new HttpError('not_found', `There is no topic ${unknown}.`);
    return topics;
  }

  /** Every topic but Kafka's own; callers at the same time share one question. */
  allTopics(): Promise<Topic[]> {
    this.everything ??= this.metadata(ALL_TOPICS)
      .then((topics) => topics.filter((topic) => !topic.isInternal))
      .finally(() => {
        this.everything = undefined;
      });
    return this.everything;
  }

  /** Callers of the same moment share one question about all their topics. */
  refresh(names: readonly string[]): Promise<Map<string, Topic>> {
    for (const name of names) this.wanted.add(name);
    this.refreshing ??= Promise.resolve().then(async () => {
      const batch = [...this.wanted];
      this.wanted = new Set();
      this.refreshing = undefined;
      const topics = await this.metadata(batch.length > MANY_TOPICS ? ALL_TOPICS : batch);
      for (const name of batch) this.known.delete(name);
      for (const topic of topics) this.known.set(topic.name, { topic, at: this.options.now() });
      return new Map(topics.map((topic) => [topic.name, topic]));
    });
    return this.refreshing;
  }

  /**
   * One request to one broker, its reply decoded and not judged.
   * @throws kafkajs' connection errors, KafkaTimeout
   */
  async request<Reply>(node: number, lane: Lane, api: Api, args: object, timeoutMs: number): Promise<Reply> {
    const connection = await this.connections.to(`${node} ${lane}`, this.addressOf(node));
    return connection.request<Reply>(api, args, timeoutMs);
  }

  /** The same for a request of our own making. */
  async call<Reply>(node: number, lane: Lane, call: OwnCall<Reply>, timeoutMs: number): Promise<Reply> {
    const connection = await this.connections.to(`${node} ${lane}`, this.addressOf(node));
    return connection.call(call, timeoutMs);
  }

  /** A connection for one caller, who closes it: for what may keep it busy for long. */
  openOwn(node: number): Promise<KafkaConnection> {
    return this.connections.open(this.addressOf(node));
  }

  /** A broker that something else than a question about topics has told of. */
  meet(node: number, address: Address): void {
    this.nodes.set(node, address);
  }

  /** One request to any broker that answers. @throws HttpError 503 */
  ask<Reply>(api: Api, args: object): Promise<Reply> {
    return this.fromAny((connection) => connection.request<Reply>(api, args, METADATA_MS));
  }

  /** Resolves when a broker answers. @throws HttpError 503 */
  check(): Promise<void> {
    return this.fromAny((connection) => connection.ping(METADATA_MS));
  }

  /** One that fails or stays silent is not the only one that is asked: its connection may not know yet that it is gone. */
  private async fromAny<T>(ask: (connection: KafkaConnection) => Promise<T>): Promise<T> {
    const first = await this.anyConnection();
    return withSecond(ask(first), SECOND_MS, () => this.anyConnection(first.address).then(ask)).catch(
      (error: unknown) => {
        throw unavailable(error);
      },
    );
  }

  private async metadata(names: readonly string[]): Promise<Topic[]> {
    const reply = await this.ask<MetadataReply>('Metadata', { topics: names, allowAutoTopicCreation: false });
    this.nodes.clear();
    for (const { nodeId, host, port } of reply.brokers) this.nodes.set(nodeId, { host, port });
    return topicsOf(reply);
  }

  /**
   * All known brokers are tried at once, those that the cluster told of and those of the configuration.
   * @param but not this one
   */
  private async anyConnection(but?: Address): Promise<KafkaConnection> {
    const isWanted = ({ host, port }: Address) => host !== but?.host || port !== but.port;
    const known = [...this.nodes]
      .filter(([, address]) => isWanted(address))
      .map(([node, address]) => this.connections.to(`${node} control`, address));
    if (known.length > 0) {
      const first = await Promise.any(known).catch(() => undefined);
      if (first !== undefined) return first;
    }
    const seeds = this.seeds
      .filter(isWanted)
      .map((address) => this.connections.to(`seed ${address.host}:${address.port}`, address));
    return Promise.any(seeds).catch(({ errors }: AggregateError) => {
      // one that refuses the gateway tells more than one that is away
      throw unavailable(errors.find((error) => refusalOf(error) !== undefined) ?? errors[0]);
    });
  }

  private addressOf(node: number): Address {
    const address = this.nodes.get(node);
    if (address === undefined) throw unavailable(new Error(`broker ${node} is not known`));
    return address;
  }
}
