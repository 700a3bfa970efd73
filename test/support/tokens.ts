import { services } from '../../src/services/index.js';

/** Credentials of every gateway that the tests start; long and varied enough for any address. */
export const TOKENS = {
  kv: 'test-kv-standard-token-0123456789',
  kvReadOnly: 'test-kv-read-only-token-0123456789',
  vector: 'test-vector-token-0123456789abcdef',
  username: 'test-broker-user',
  password: 'test-broker-password-0123456789abc',
  queue: 'test-queue-token-0123456789abcdefg',
  currentSigningKey: 'sig_test_current_0123456789abcdefg',
  nextSigningKey: 'sig_test_next_0123456789abcdefghij',
  metrics: 'test-metrics-token-0123456789abcdef',
} as const;

/** Those that tests name. */
const NAMED: Readonly<Record<string, string>> = {
  PORTICO_KV_TOKEN: TOKENS.kv,
  PORTICO_KV_READONLY_TOKEN: TOKENS.kvReadOnly,
  PORTICO_VECTOR_TOKEN: TOKENS.vector,
  PORTICO_BROKER_USERNAME: TOKENS.username,
  PORTICO_BROKER_PASSWORD: TOKENS.password,
  PORTICO_QUEUE_TOKEN: TOKENS.queue,
  PORTICO_QUEUE_CURRENT_SIGNING_KEY: TOKENS.currentSigningKey,
  PORTICO_QUEUE_NEXT_SIGNING_KEY: TOKENS.nextSigningKey,
};

/** The same as environment variables of the gateway; of a service whose credentials no test names, all that it has. */
export const TOKEN_VARIABLES: Readonly<Record<string, string>> = {
  ...NAMED,
  ...Object.fromEntries(
    services
      .map(({ card }) => card.credentials.map(({ variable }) => variable))
      .filter((variables) => !variables.some((variable) => variable in NAMED))
      .flat()
      .map((variable) => [variable, `test-${variable}-0123456789abcdef`]),
  ),
};
