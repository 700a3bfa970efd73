import { type Config, enabledServices } from './schema.js';

/**
 * `{"kv":{"default":{"standard":"...","read-only":"..."}},"metricsToken":"..."}`: the bearer tokens in force, derived
 * ones too.
 */
export function tokenReport(config: Config): string {
  const report = Object.fromEntries(
    enabledServices(config).map(({ service, section }) => [
      service.name,
      Object.fromEntries(
        service.mounts(section).flatMap(({ name, auth }) => {
          if (auth.kind !== 'bearer') return [];
          const tokens = auth.credentials.map(({ token, principal }) => [principal.name, token]);
          return [[name, Object.fromEntries(tokens)]];
        }),
      ),
    ]),
  );
  const { metricsToken } = config.http;
  const { token: adminToken } = config.admin;
  const own = {
    ...(metricsToken === null ? {} : { metricsToken }),
    ...(adminToken === null ? {} : { adminToken }),
  };
  return `${JSON.stringify({ ...report, ...own })}\n`;
}
