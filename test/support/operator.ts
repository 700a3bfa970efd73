import { TOKENS } from './tokens.js';

/** Environment of a gateway that tells an operator more than others. */
export const OPERATOR_VARIABLES = { PORTICO_METRICS_TOKEN: TOKENS.metrics };

/** A page such as `/readyz`, as an operator of the gateway at `url` gets it. */
export async function operatorPage(url: string, path: string): Promise<{ status: number; text: string }> {
  const headers = { authorization: `Bearer ${TOKENS.metrics}` };
  const reply = await fetch(`${url}${path}`, { headers });
  return { status: reply.status, text: await reply.text() };
}
