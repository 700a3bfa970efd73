import { readFileSync } from 'node:fs';
import { TOKEN_VARIABLES } from './tokens.js';

type Document = Record<string, unknown>;

const BACKEND_VARIABLES = [
  'PORTICO_REDIS_URL',
  'PORTICO_DATABASE_URL',
  'PORTICO_KAFKA_BROKERS',
  'PORTICO_RABBITMQ_URL',
] as const;

/** The address of a backend of this test run. @throws when the tests were not started by `npm test` or with its variables */
export function backendAddress(variable: (typeof BACKEND_VARIABLES)[number]): string {
  const address = process.env[variable];
  if (address === undefined || address === '')
    throw new Error(`${variable} is not set: run the tests with npm test`);
  return address;
}

/** Environment of a gateway under test: its tokens, and the backends of this run. */
export function gatewayEnvironment(): Record<string, string> {
  const environment: Record<string, string> = { ...TOKEN_VARIABLES };
  for (const variable of BACKEND_VARIABLES) {
    const address = process.env[variable];
    if (address !== undefined && address !== '') environment[variable] = address;
  }
  return environment;
}

/** Every section of the generated configuration but the gateway's own is a service. */
const SERVICES = [...readFileSync('config/portico.yaml', 'utf8').matchAll(/^(\w+):/gm)]
  .map(([, section]) => section as string)
  .filter((section) => !['http', 'log', 'console', 'traces', 'admin'].includes(section));

/** A configuration document on a free port in which services that it does not mention are switched off. */
export function testDocument(document: Document): Document {
  const complete: Document = { log: { level: process.env.PORTICO_TEST_LOG ?? 'silent' }, ...document };
  complete.http = { port: 0, ...(document.http as Document | undefined) };
  for (const service of SERVICES) complete[service] ??= { enabled: false };
  return complete;
}
