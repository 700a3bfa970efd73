import { cards } from '../state/services.mjs';

/** The gateway has just said that it runs. */
const answerMs = 5_000;

/** How the first client of a service logs in, as a header. */
function authorizationOf(service, env) {
  const [first, second] = (cards[service]?.credentials ?? []).map(({ variable }) => variable);
  const [name, password] = [env[first ?? ''], env[second ?? '']];
  if (!name) return undefined;
  // a name of a user comes with its password
  if (!first?.endsWith('_USERNAME')) return `Bearer ${name}`;
  return password ? `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` : undefined;
}

/**
 * A link by which a browser signs in to the console once, with all that the card shows: the gateway keeps that for an hour,
 * and the link holds a code for it.
 * @param {import('./gateway.mjs').Check} report
 * @param {Record<string, string | undefined>} env the gateway's
 * @returns {Promise<string | undefined>} nothing where there is no console; without a code where the gateway gives none
 */
export async function consoleLink(report, env) {
  if (!report.consoleUrl) return undefined;
  const metrics = env.PORTICO_METRICS_TOKEN;
  const credentials = [
    ...report.services.map((service) => authorizationOf(service, env)),
    metrics && `Bearer ${metrics}`,
  ].filter(Boolean);
  try {
    const reply = await fetch(new URL('api/codes', report.consoleUrl), {
      method: 'POST',
      body: JSON.stringify({ credentials }),
      signal: AbortSignal.timeout(answerMs),
    });
    const { code } = /** @type {{code?: string}} */ (await reply.json());
    return code ? `${report.consoleUrl}#sign-in=${code}` : report.consoleUrl;
  } catch {
    return report.consoleUrl;
  }
}
