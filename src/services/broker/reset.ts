import type { StartedService } from '../service.js';
import { emptyCluster } from './kafka/client.js';

const CONNECT_MS = 5_000;

interface Group {
  readonly name: string;
  readonly instances: readonly { readonly name: string }[];
}

/** Consumers leave their groups, which can then be deleted; topics stay and their records go. */
export async function resetBroker({ call, variables, log }: StartedService): Promise<void> {
  for (const { name: group, instances } of (await call('GET', '/consumers')) as Group[])
    for (const { name } of instances)
      await call('DELETE', `/delete-consumer/${encodeURIComponent(group)}/${encodeURIComponent(name)}`);
  await emptyCluster({
    brokers: (variables.PORTICO_KAFKA_BROKERS ?? '').split(','),
    security: { tls: undefined, sasl: undefined },
    connectTimeoutMs: CONNECT_MS,
    log,
  });
}
