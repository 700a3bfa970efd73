import { loadConfig } from '../../src/config/load.js';
import { type Reloaded, reloadConfig } from '../../src/config/reload.js';
import { createGateway, type GatewayOptions } from '../../src/gateway.js';
import { createLogger, type Logger } from '../../src/lib/logger.js';
import { gatewayEnvironment, testDocument } from './environment.js';

export interface RunningGateway {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /** Reads another document in its place, as SIGHUP does. @throws ConfigError */
  reload(document: Record<string, unknown>, environment?: Record<string, string>): Reloaded;
  stop(): Promise<void>;
}

/**
 * A gateway in this process, on a free port and the backends of this run. Services that `document` does not mention
 * are switched off.
 * @param log default: one of the level that the tests' environment asks for
 */
export async function startGateway(
  document: Record<string, unknown>,
  environment: Record<string, string> = {},
  log?: Logger,
  options: Pick<GatewayOptions, 'worker'> = {},
): Promise<RunningGateway> {
  const { config } = loadConfig({
    document: testDocument(document),
    environment: { ...gatewayEnvironment(), ...environment },
  });
  const gateway = createGateway(config, {
    log: log ?? createLogger(config.log.level),
    openapi: () => '{}',
    ...options,
  });
  const { port } = await gateway.start();
  let current = config;
  return {
    url: `http://127.0.0.1:${port}`,
    reload: (changed, variables = {}) => {
      const reloaded = reloadConfig(current, {
        document: testDocument(changed),
        environment: { ...gatewayEnvironment(), ...environment, ...variables },
      });
      current = reloaded.config;
      gateway.reload(current);
      return reloaded;
    },
    stop: async () => {
      const errors = await gateway.stop();
      if (errors.length > 0) throw new AggregateError(errors, 'the gateway did not stop cleanly');
    },
  };
}
