import assert from 'node:assert/strict';
import { once } from 'node:events';
import { serve } from '@hono/node-server';
import { Client } from '@upstash/qstash';
import { receiverApp } from './app.mjs';

const attempts = [];
let done;
const all = new Promise((resolve) => {
  done = resolve;
});
const app = receiverApp(async (message, retried) => {
  attempts.push([message.order, retried]);
  if (retried === 0) throw new Error('not yet');
  done();
});
app.onError((_error, context) => context.text('failed', 500));
const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}/work`;

const client = new Client({ baseUrl: process.env.QSTASH_URL, token: process.env.QSTASH_TOKEN });
await client.publishJSON({ url, body: { order: 7 }, retryDelay: '1000' });
await all;
assert.deepEqual(attempts, [
  [7, 0],
  [7, 1],
]);
assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 401);
server.close();
console.log('ok');
