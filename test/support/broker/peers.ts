import { freePort } from '../free-port.js';
import { type SpawnedGateway, spawnGateway } from '../spawned-gateway.js';

/** Gateways that share their consumer instances. */
export class PeerGateways {
  readonly running: SpawnedGateway[] = [];

  private constructor(readonly places: readonly string[]) {}

  /** All that know of each other's places; none runs yet. */
  static async of(count: number): Promise<PeerGateways> {
    const ports = new Set<number>();
    while (ports.size < count) ports.add(await freePort());
    return new PeerGateways([...ports].map((port) => `127.0.0.1:${port}`));
  }

  async start(index: number): Promise<SpawnedGateway> {
    const gateway = await spawnGateway({
      broker: {
        peers: {
          listen: this.places[index],
          addresses: this.places,
          secret: 'the-secret-of-the-peers-0123456789',
        },
      },
    });
    this.running[index] = gateway;
    return gateway;
  }

  async stop(): Promise<void> {
    await Promise.all(this.running.map((gateway) => gateway.stop()));
  }
}
