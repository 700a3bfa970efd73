import { makeRequest } from './generator.mjs';
import { FuzzClient } from './perform.mjs';

/** Requests that wait for the gateway's patience to end do so beside the others, at most so many at once. */
const MOST_STALLED = 60;

/**
 * Sends the requests `first` to `first + requests - 1` of a seed over a number of clients.
 * @param {{ seed: number, first: number, requests: number, connections: number, context: import('./requests.mjs').Context,
 *   target: import('./perform.mjs').Target, problems: import('./problems.mjs').Problems, crashed: Promise<unknown> }} attack
 *   `crashed` resolves when there is nobody left who could answer
 * @returns {Promise<Map<string, number>>} how many there were of each kind
 */
export async function attack({ seed, first, requests, connections, context, target, problems, crashed }) {
  const kinds = new Map();
  const stalled = new Set();
  let next = first;
  let over = false;
  const perform = async (client, request) => {
    problems.started(request);
    const problem = await client.perform(request);
    problems.ended(request);
    if (problem !== undefined && !over) problems.add(problem, request);
  };
  const aside = (request) => {
    const client = new FuzzClient(target);
    const done = perform(client, request).finally(() => {
      client.close();
      stalled.delete(done);
    });
    stalled.add(done);
    return stalled.size < MOST_STALLED ? undefined : Promise.race(stalled);
  };
  const loop = async () => {
    const client = new FuzzClient(target);
    while (!over && next < first + requests && !problems.tooMany) {
      const request = makeRequest(seed, next++, context);
      kinds.set(request.kind, (kinds.get(request.kind) ?? 0) + 1);
      await (request.ending === 'wait' ? aside(request) : perform(client, request));
    }
    client.close();
  };
  const all = Promise.all(Array.from({ length: connections }, loop)).then(() => Promise.all(stalled));
  await Promise.race([all, crashed]);
  over = true;
  return kinds;
}
