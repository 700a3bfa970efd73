import type { Service } from '../service.js';
import { card, headerAlias, probe } from './card.js';
import { documentation } from './documentation.js';
import { errorSchema, formatError } from './errors.js';
import { mountOf } from './mount.js';
import { resetBroker } from './reset.js';
import { routes } from './routes.js';
import { openBroker } from './runtime.js';
import { type BrokerSettings, brokerSettings, issuedPermissions } from './settings.js';

/** Kafka over HTTP: produce, fetch at offsets, consumer groups. */
export const broker: Service<BrokerSettings> = {
  name: 'broker',
  config: brokerSettings,
  routes,
  documentation,
  formatError,
  error: errorSchema,
  card,
  probe,
  headerAlias,
  exposedHeaders: ['broker-consumer-state', 'broker-delivery', 'broker-partition-errors'],
  secrets: ({ clusters, peers }) => [
    ...(peers.listen === null ? [] : [{ key: 'broker.peers.secret', value: peers.secret }]),
    ...clusters.flatMap(({ users }, i) =>
      users.map(({ password }, j) => ({
        key: `broker.clusters[${i}].users[${j}].password`,
        value: password,
      })),
    ),
  ],
  addresses: ({ clusters }) =>
    clusters.map(({ brokers }, i) => ({
      backend: 'kafka',
      key: `broker.clusters[${i}].brokers`,
      given: brokers.length > 0,
    })),
  permissions: issuedPermissions,
  mounts: ({ clusters }) => clusters.map(mountOf),
  open: openBroker,
  reset: resetBroker,
};
