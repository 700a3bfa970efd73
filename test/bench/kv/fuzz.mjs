import { createHash, randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { attack } from './fuzz/attack.mjs';
import { Canary } from './fuzz/canary.mjs';
import { GC_ARGUMENTS, growth, heldBy } from './fuzz/memory.mjs';
import { Problems } from './fuzz/problems.mjs';
import { readCommandTable } from './fuzz/rules.mjs';
import { changes, lookAt } from './fuzz/shared-connection.mjs';
import { startThrowawayRedis } from './fuzz/throwaway-redis.mjs';
import { startGateway } from './servers.mjs';

/** It starts a Redis of its own: FLUSHALL, CONFIG SET and ACL are among what is tried. */
export const backends = [];

const REQUESTS = 100_000;
const CLIENTS = 24;
/** Settings of the gateway under test; short where a run would be spent waiting. */
const BODY_IDLE_MS = 1_000;
const REQUEST_MS = 4_000;
/** Only what hangs takes so long: MGET of 300,000 keys took a machine with a load of 17 more than the default 10 s. */
const TIMEOUT_MS = 60_000;
/** What a reply may be late. */
const GRACE_MS = 2_000;

/**
 * Random requests of every form against one gateway, and canaries beside them. The same seed makes the same requests;
 * `first` with `requests: 1` makes a single one of them again.
 * @param {import('../frame.mjs').Load} load
 * @returns {Promise<boolean>} whether the gateway did nothing wrong
 */
export async function run({
  requests = REQUESTS,
  seed = randomInt(2 ** 31),
  first = 0,
  connections = CLIENTS,
}) {
  console.log(`\nkv: ${requests} random requests, seed ${seed}`);
  const problems = new Problems(seed);
  const tokens = { full: tokenOf(seed, 'full'), read: tokenOf(seed, 'read') };
  const throwaway = await startThrowawayRedis();
  try {
    const gateway = await startFuzzGateway(throwaway.url, tokens, problems);
    try {
      const context = { table: await readCommandTable(throwaway.redis), tokens };
      await fuzz({ gateway, redis: throwaway.redis, problems, context, seed, first, requests, connections });
    } catch (error) {
      problems.closed = true;
      throw error;
    } finally {
      await gateway.stop();
    }
    const code = await gateway.exited;
    if (code !== 0) problems.add(`the gateway ended with ${code}`);
  } finally {
    await throwaway.stop();
  }
  console.log(
    problems.count === 0
      ? 'nothing wrong'
      : `${problems.count} PROBLEMS (seed ${seed})\n${problems.summary()}`,
  );
  return problems.count === 0;
}

/** They stand in the requests, which must come out the same again. */
const tokenOf = (seed, name) => createHash('sha256').update(`${seed} ${name}`).digest('base64url');

function startFuzzGateway(url, tokens, problems) {
  const document = JSON.stringify({
    http: { port: 0, bodyIdleTimeoutMs: BODY_IDLE_MS, requestTimeoutMs: REQUEST_MS },
    // one that waits in Redis is answered before it counts as hung
    kv: { databases: [{ timeoutMs: TIMEOUT_MS, longestBlockMs: 500 }] },
  });
  const env = {
    PORTICO_REDIS_URL: url,
    PORTICO_KV_TOKEN: tokens.full,
    PORTICO_KV_READONLY_TOKEN: tokens.read,
  };
  // warnings are about connections to Redis and about replies of 500 and more: there must be none
  const onLine = (line) => {
    if (line.includes(tokens.full) || line.includes(tokens.read))
      problems.add(`a token is in the log: ${line}`);
    if (/"level":(?:[456]0|"(?:warn|error|fatal)")/.test(line))
      problems.addForAll(`a warning in the log: ${line}`);
  };
  return startGateway(env, { document, nodeArguments: GC_ARGUMENTS, onLine });
}

async function fuzz({ gateway, redis, problems, ...rest }) {
  const target = {
    port: gateway.port,
    deadlineMs: TIMEOUT_MS + GRACE_MS,
    seenTokens: new Set(),
    outcomes: new Map(),
  };
  const before = await lookAt(redis);
  const heldBefore = await heldBy(gateway);
  const canaries = await startCanaries(gateway.port, rest.context.tokens.full, problems);
  const rss = [gateway.rssMegabytes()];
  const sampler = setInterval(() => rss.push(gateway.rssMegabytes()), 50);
  let crashed = false;
  let finished = false;
  const crash = gateway.exited.then((code) => {
    if (finished) return;
    crashed = true;
    clearInterval(sampler);
    problems.addForAll(`the gateway ended with ${code}`);
  });
  const startedAt = performance.now();
  const kinds = await attack({ ...rest, target, problems, crashed: crash });
  const seconds = (performance.now() - startedAt) / 1_000;
  clearInterval(sampler);
  await Promise.all(canaries.map((canary) => canary.stop()));
  if (!crashed) {
    await checkRest(gateway.port, rest.context.tokens.full, problems);
    for (const change of changes(before, await lookAt(redis))) problems.add(change);
    const held = await heldBy(gateway);
    for (const grown of growth(heldBefore, held)) problems.add(grown);
    const line = (name) => `${name} ${heldBefore[name].toFixed(0)} -> ${held[name].toFixed(0)} MB`;
    console.log(`at rest: ${line('heap')}, ${line('rss')}`);
  }
  finished = true;
  report({ kinds, outcomes: target.outcomes, seconds, rss, canaries, requests: rest.requests });
}

async function startCanaries(port, token, problems) {
  const canaries = ['a', 'b'].map(
    (name) =>
      new Canary({ token, name, onWrong: (problem) => problems.addForAll(`canary ${name}: ${problem}`) }),
  );
  await Promise.all(canaries.map((canary) => canary.start(port)));
  return canaries;
}

/** It still serves, and holds no request that nobody waits for: those of clients that went away end by the deadline. */
async function checkRest(port, token, problems) {
  const url = `http://127.0.0.1:${port}`;
  const end = performance.now() + TIMEOUT_MS + GRACE_MS;
  for (;;) {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const inFlight = Number(/^portico_http_requests_in_flight (\d+)/m.exec(metrics)?.[1]);
    // the page asks for itself
    if (inFlight <= 1) break;
    if (performance.now() > end) return problems.add(`${inFlight - 1} requests are still in flight`);
    await sleep(100);
  }
  const authorization = `Bearer ${token}`;
  const reply = await fetch(`${url}/kv`, { method: 'POST', headers: { authorization }, body: '["PING"]' });
  if ((await reply.text()) !== '{"result":"PONG"}') problems.add('PING does not work any more');
}

function report({ kinds, outcomes, seconds, rss, canaries, requests }) {
  const groups = new Map();
  for (const [kind, count] of kinds) {
    const group = kind.replace(/ \d+$/, '');
    groups.set(group, (groups.get(group) ?? 0) + count);
  }
  const list = (counts) => [...counts].map(([name, count]) => `${count} ${name}`).join(', ');
  console.log(`${list(groups)}\nreplies: ${list([...outcomes].sort())}`);
  const rounds = canaries.reduce((sum, canary) => sum + canary.rounds, 0);
  const slowest = Math.max(...canaries.map((canary) => canary.slowest));
  console.log(
    `${seconds.toFixed(1)} s, ${Math.round(requests / seconds)} requests/s; canaries: ${rounds} rounds, slowest answer ${slowest.toFixed(0)} ms; ` +
      `highest RSS ${Math.max(...rss).toFixed(0)} MB`,
  );
}
