const VARIABLES = {
  redis: 'PORTICO_REDIS_URL',
  postgres: 'PORTICO_DATABASE_URL',
  kafka: 'PORTICO_KAFKA_BROKERS',
  rabbitmq: 'PORTICO_RABBITMQ_URL',
};

/**
 * Starts what the environment does not name; resolves to what ends it again.
 * @param {ReadonlySet<string>} names such as `redis`
 */
export async function startBackends(names) {
  const missing = [...names].filter((name) => !process.env[VARIABLES[name]]);
  if (missing.length === 0) return async () => undefined;
  const { backends } = await import('../../compose/backends/backends.mjs');
  const own = await backends('test');
  await own.start(missing);
  Object.assign(process.env, await own.urls());
  return () => own.stop(missing);
}
