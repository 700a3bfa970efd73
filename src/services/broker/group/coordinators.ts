import { kafkaCodeRefusal, kafkaType, translateError } from '../errors.js';
import type { Cluster } from '../kafka/cluster.js';
import type { Api } from '../kafka/kafkajs-internals.js';
import { pause } from '../kafka/waits.js';

/** A group's coordinator is elsewhere, or not ready yet: to be looked for again. */
export const COORDINATOR_NOT_READY: ReadonlySet<string> = new Set([
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
  'NOT_COORDINATOR_FOR_GROUP',
]);

/** Groups whose coordinator is remembered. */
const REMEMBERED = 10_000;
/** Pause before a coordinator that was not ready is asked again, in ms. */
const PAUSE_MS = 200;
const TRIES = 8;

interface FindReply {
  readonly errorCode: number;
  readonly coordinator: { readonly nodeId: number; readonly host: string; readonly port: number };
}

/** Knows which broker coordinates which consumer group. */
export class Coordinators {
  private readonly nodes = new Map<string, number>();

  constructor(private readonly cluster: Cluster) {}

  /** Id of the broker that coordinates `group`. @throws HttpError 503 while there is none */
  async find(group: string): Promise<number> {
    const known = this.nodes.get(group);
    if (known !== undefined) return known;
    const { errorCode, coordinator } = await this.cluster.ask<FindReply>('GroupCoordinator', {
      groupId: group,
    });
    if (errorCode !== 0) throw kafkaCodeRefusal(errorCode, `group ${group}`);
    this.cluster.meet(coordinator.nodeId, { host: coordinator.host, port: coordinator.port });
    if (this.nodes.size >= REMEMBERED) this.nodes.clear();
    this.nodes.set(group, coordinator.nodeId);
    return coordinator.nodeId;
  }

  /** The next `find` asks Kafka. */
  forget(group: string): void {
    this.nodes.delete(group);
  }

  /**
   * A quick request to the coordinator of `group`, repeated while that is moving or loading.
   * @param errorOf the error code that decides, of a decoded reply; 0 for none
   * @throws HttpError when it stays away, or for any other error code
   */
  async request<Reply>(
    group: string,
    api: Api,
    args: object,
    timeoutMs: number,
    errorOf: (reply: Reply) => number,
  ): Promise<Reply> {
    for (let tries = 1; ; tries++) {
      try {
        const node = await this.find(group);
        const reply = await this.cluster.request<Reply>(node, 'control', api, args, timeoutMs);
        const code = errorOf(reply);
        if (code === 0) return reply;
        throw kafkaCodeRefusal(code, `group ${group}`);
      } catch (error) {
        this.forget(group);
        if (!isNotReady(error) || tries === TRIES) throw translateError(error);
      }
      await pause(PAUSE_MS);
    }
  }
}

function isNotReady(error: unknown): boolean {
  const type = kafkaType(error);
  return type !== undefined && COORDINATOR_NOT_READY.has(type);
}
