import { setTimeout as sleep } from 'node:timers/promises';
import { median, noneWrong, printGoal, printTable } from '../frame.mjs';
import { HttpConnection } from '../http-connection.mjs';
import { drive, fixed } from '../load.mjs';
import { get } from './requests.mjs';
import { withKvServers } from './servers.mjs';

export const backends = ['redis'];

/** More than the goal speaks of: the free heap of a process alone can hold the first thousand. */
const CONNECTIONS = 3_000;
const MEGABYTES_PER_THOUSAND = 30;
/** Compiles what there is to compile and no more: the free heap that much work leaves would hide what connections take. */
const WARM_UP_REQUESTS = 5_000;
/** Long enough for the collector to take what the requests left. */
const SETTLE_MS = 3_000;
const SAMPLES = 20;

/**
 * What connections cost on which a request was answered and then nothing happens: clients with a pool keep many.
 * @param {import('../frame.mjs').Load} load
 */
export function run({ connections = CONNECTIONS }) {
  return withKvServers(async ({ prefix, token, reference, gateway }) => {
    console.log(`\nkv: ${connections} idle kept connections`);
    const rows = [
      await costOf('node:http + ioredis', reference, get(`/get/${prefix}none`), connections),
      await costOf('Portico', gateway, get(`/kv/get/${prefix}none`, token), connections),
    ];
    printTable(rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k, String(v)]))));
    const cost = rows[1]['MB per 1,000'];
    const goal = `1,000 connections take fewer than ${MEGABYTES_PER_THOUSAND} MB`;
    printGoal(goal, cost < MEGABYTES_PER_THOUSAND, `${cost} MB`);
    return noneWrong(rows.reduce((sum, { wrong }) => sum + wrong, 0));
  });
}

async function costOf(name, server, request, connections) {
  const session = fixed(request, '{"result":null}');
  let { wrong } = await drive({ port: server.port, session, connections: 64, requests: WARM_UP_REQUESTS });
  await sleep(SETTLE_MS);
  const before = await rss(server);
  const opened = [];
  // one after the other: many at once would leave garbage that a pool of clients does not
  for (let i = 0; i < connections; i++) {
    const connection = await HttpConnection.open(server.port);
    opened.push(connection);
    await new Promise((resolve, reject) => {
      const receive = (status, body) => {
        if (!session().isRight(status, body)) wrong += 1;
        resolve();
      };
      connection.send(request, receive, reject);
    });
  }
  await sleep(SETTLE_MS);
  const after = await rss(server);
  for (const connection of opened) connection.close();
  return {
    server: name,
    'RSS MB before': Math.round(before),
    'with them': Math.round(after),
    'MB per 1,000': Number((((after - before) * 1_000) / connections).toFixed(1)),
    wrong,
  };
}

async function rss(server) {
  const samples = [];
  for (let i = 0; i < SAMPLES; i++) {
    samples.push(server.rssMegabytes());
    await sleep(50);
  }
  return median(samples);
}
