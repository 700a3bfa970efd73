import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Redis } from '@upstash/redis';
import { Index } from '@upstash/vector';
import { PorticoContainer } from './portico-container.mjs';

/** @type {import('./portico-container.mjs').StartedPorticoContainer} */
let portico;

before(async () => {
  portico = await new PorticoContainer().withTopics({ orders: 1 }).withIndex({ dimension: 3 }).start();
});

after(() => portico?.stop());

test('the SDKs work against it, and one call empties it', async () => {
  const redis = new Redis(portico.kv);
  const index = new Index(portico.vector);
  await redis.set('greeting', 'hello');
  await index.upsert({ id: 'a', vector: [1, 2, 3] });
  assert.equal(await redis.get('greeting'), 'hello');
  assert.equal((await index.query({ topK: 1, vector: [1, 2, 3] }))[0]?.id, 'a');

  await portico.reset();
  assert.equal(await redis.get('greeting'), null);
  assert.deepEqual(await index.query({ topK: 1, vector: [1, 2, 3] }), []);
});

test('the topics that were asked for are there', async () => {
  const { url, username, password } = portico.broker;
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const answer = await fetch(`${url}/produce/orders`, {
    method: 'POST',
    headers: { authorization },
    body: '{"value":"one"}',
  });
  assert.equal(answer.status, 200, await answer.text());
});
