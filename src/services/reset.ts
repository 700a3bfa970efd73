import { Lifecycle } from '../lib/lifecycle.js';
import type { Logger } from '../lib/logger.js';
import { services } from './index.js';
import type { Service, StartedService } from './service.js';

/** What `npm start` notes of the gateway that it runs: `.portico/run/gateway.json`. */
export interface StartNote {
  readonly report: {
    readonly urls: Readonly<Record<string, string>>;
    readonly services: readonly string[];
  };
  readonly env: Readonly<Record<string, string>>;
}

/** Wipes what the services of a start hold. Resolves to the names of those that do not say how. */
export async function resetServices({ report, env }: StartNote, log: Logger): Promise<string[]> {
  const lifecycle = new Lifecycle(log);
  const running = services.filter(({ name }) => report.services.includes(name));
  try {
    await Promise.all(
      running.map(async ({ name, card, reset }) => {
        const call = callerOf(report.urls[name] ?? '', authorizationOf(card, env));
        await reset?.({ call, variables: env, log, lifecycle });
      }),
    );
  } finally {
    await lifecycle.stop();
  }
  return running.filter(({ reset }) => reset === undefined).map(({ name }) => name);
}

/** How the first of a service's credentials is sent; a name comes with its password. */
export function authorizationOf(
  { credentials }: Service['card'],
  values: Readonly<Record<string, string>>,
): string {
  const [login, password] = credentials.map(({ variable }) => values[variable]);
  const made = credentials[0]?.made;
  if (made?.by !== 'start' || made.as !== 'name') return `Bearer ${login}`;
  return `Basic ${Buffer.from(`${login}:${password}`).toString('base64')}`;
}

function callerOf(url: string, authorization: string): StartedService['call'] {
  return async (method, path, body) => {
    const reply = await fetch(`${url}${path}`, {
      method,
      headers: { authorization },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!reply.ok) throw new Error(`${method} ${url}${path}: ${reply.status} ${await reply.text()}`);
    return reply.json();
  };
}
