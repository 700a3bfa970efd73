import { backendAddress } from './environment.js';
import { startRelay } from './tcp-relay.js';

/** The backends of this run behind relays that let nobody in at first, like backends that are not there yet. */
export interface RelayedBackends {
  /** Variables of a gateway. */
  readonly addresses: Readonly<Record<string, string>>;
  open(): void;
  stop(): Promise<void>;
}

export async function startRelays(): Promise<RelayedBackends> {
  const behind = async (target: number) => {
    const relay = await startRelay(target);
    relay.cut();
    return relay;
  };
  const urls = await Promise.all(
    (['PORTICO_REDIS_URL', 'PORTICO_DATABASE_URL', 'PORTICO_RABBITMQ_URL'] as const).map(async (variable) => {
      const url = new URL(backendAddress(variable));
      const relay = await behind(Number(url.port));
      url.port = String(relay.port);
      return { variable, address: url.href, relay };
    }),
  );
  // the brokers tell their own addresses to who has got through to one
  const [, port] = backendAddress('PORTICO_KAFKA_BROKERS').split(':');
  const kafka = await behind(Number(port));
  const all = [
    ...urls,
    { variable: 'PORTICO_KAFKA_BROKERS', address: `127.0.0.1:${kafka.port}`, relay: kafka },
  ];
  return {
    addresses: Object.fromEntries(all.map(({ variable, address }) => [variable, address])),
    open: () => {
      for (const { relay } of all) relay.release();
    },
    stop: async () => {
      await Promise.all(all.map(({ relay }) => relay.stop()));
    },
  };
}
