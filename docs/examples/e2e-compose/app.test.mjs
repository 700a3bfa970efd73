import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

const { PORTICO_RESET_URL, PORTICO_KV_TOKEN, APP_URL } = process.env;

const ordersOf = async () => Number(await (await fetch(`${APP_URL}/orders`)).text());

/** Whatever an earlier test has left in Redis, Postgres, Kafka and RabbitMQ goes by one call. */
beforeEach(async () => {
  const headers = { authorization: `Bearer ${PORTICO_KV_TOKEN}` };
  const answer = await fetch(PORTICO_RESET_URL, { method: 'POST', headers });
  assert.equal(answer.status, 200, await answer.text());
});

for (const name of ['an order is delivered and counted', 'the next test begins at zero'])
  test(name, async () => {
    assert.equal(await ordersOf(), 0);
    await fetch(`${APP_URL}/orders`, { method: 'POST', body: '{"item":"book"}' });
    for (let turn = 0; turn < 300 && (await ordersOf()) === 0; turn += 1) await sleep(100);
    assert.equal(await ordersOf(), 1);
  });
