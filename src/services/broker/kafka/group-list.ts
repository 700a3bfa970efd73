import { translateError } from '../errors.js';
import { type ClientOptions, withAdmin } from './client.js';

/** A consumer group as Kafka has it. */
export interface KafkaGroup {
  readonly name: string;
  /** Such as `Stable`, `Empty`, `PreparingRebalance`. */
  readonly state: string;
  readonly members: readonly { readonly client: string; readonly host: string }[];
}

/** A window of groups, and whether there are more behind it. */
export interface GroupWindow {
  readonly groups: readonly KafkaGroup[];
  readonly hasMore: boolean;
}

/** Groups of every client, not of Portico's instances alone. */
export class GroupList {
  constructor(private readonly client: ClientOptions) {}

  /**
   * The first `limit` by name behind `after` that are `wanted`. Kafka names all of them in one reply; only those are
   * described. @throws HttpError
   */
  async window(wanted: (name: string) => boolean, after: string, limit: number): Promise<GroupWindow> {
    try {
      return await withAdmin(this.client, async (admin) => {
        const { groups } = await admin.listGroups();
        const behind = groups
          .map(({ groupId }) => groupId)
          .filter((name) => name > after && wanted(name))
          .sort();
        const names = behind.slice(0, limit);
        const hasMore = behind.length > limit;
        if (names.length === 0) return { groups: [], hasMore };
        const described = await admin.describeGroups(names);
        const views = described.groups.map(({ groupId, state, members }) => ({
          name: groupId,
          state,
          members: members.map(({ clientId, clientHost }) => ({ client: clientId, host: clientHost })),
        }));
        return { groups: views.sort((a, b) => (a.name < b.name ? -1 : 1)), hasMore };
      });
    } catch (error) {
      throw translateError(error);
    }
  }
}
