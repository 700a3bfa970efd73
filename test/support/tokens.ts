import { services } from '../../src/services/index.js';
import { authorizationOf as sentBy } from '../../src/services/reset.js';
import type { Service } from '../../src/services/service.js';

/** Credentials of every gateway that the tests start, as environment variables: each service's card names them. */
export const TOKEN_VARIABLES: Readonly<Record<string, string>> = Object.fromEntries(
  services.flatMap(({ card }) => card.credentials.map(({ variable, inTests }) => [variable, inTests])),
);

function token(variable: string): string {
  const value = TOKEN_VARIABLES[variable];
  if (value === undefined) throw new Error(`no service's card names ${variable}`);
  return value;
}

/** Those that tests of a service ask for by name. */
export const TOKENS = {
  kv: token('PORTICO_KV_TOKEN'),
  kvReadOnly: token('PORTICO_KV_READONLY_TOKEN'),
  vector: token('PORTICO_VECTOR_TOKEN'),
  vectorReadOnly: token('PORTICO_VECTOR_READONLY_TOKEN'),
  username: token('PORTICO_BROKER_USERNAME'),
  password: token('PORTICO_BROKER_PASSWORD'),
  queue: token('PORTICO_QUEUE_TOKEN'),
  currentSigningKey: token('PORTICO_QUEUE_CURRENT_SIGNING_KEY'),
  nextSigningKey: token('PORTICO_QUEUE_NEXT_SIGNING_KEY'),
  metrics: 'test-metrics-token-0123456789abcdef',
} as const;

/** How the first client of a service logs in. */
export const authorizationOf = ({ card }: Service): string => sentBy(card, TOKEN_VARIABLES);
