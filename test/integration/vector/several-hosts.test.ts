import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { type PostgresPair, startPostgresPair } from '../../support/postgres/postgres-pair.js';
import { TOKENS } from '../../support/tokens.js';
import { vectorCaller } from '../../support/vector.js';

let pair: PostgresPair;
let gateway: RunningGateway;
let call: ReturnType<typeof vectorCaller>;
const vector = [1, 2, 3];

const start = (address: string) =>
  startGateway(
    { vector: { database: { connectTimeoutMs: 1_000 }, indexes: [{ dimension: 3, token: TOKENS.vector }] } },
    { PORTICO_DATABASE_URL: address },
  );

beforeAll(async () => {
  pair = await startPostgresPair();
  await pair.primary.query('create extension vector');
  gateway = await start(pair.url);
  call = vectorCaller(`${gateway.url}/vector`);
});

afterAll(async () => {
  await gateway?.stop();
  await pair?.stop();
});

const upsert = async (id: string) => {
  const { status, text } = await call('/upsert', { id, vector });
  if (status !== 200) throw new Error(`${status} ${text}`);
};

test('of several hosts the one that takes writes is found, wherever it stands', async () => {
  await eventually(() => upsert('first'));
  expect(
    await pair.primary.query('select 1 from pg_stat_activity where application_name = $$portico vector$$'),
  ).not.toEqual([]);
  expect(
    await pair.standby.query('select 1 from pg_stat_activity where application_name = $$portico vector$$'),
  ).toEqual([]);
});

test('when the primary is lost, the standby that was promoted is used, and nothing acknowledged is missing', async () => {
  const acknowledged = ['first'];
  for (let i = 0; i < 20; i++) {
    await upsert(`before-${i}`);
    acknowledged.push(`before-${i}`);
  }
  await pair.primary.crash();
  expect((await call('/upsert', { id: 'lost', vector })).status).toBe(503);
  await pair.promote();
  await eventually(() => upsert('after'));
  const { result } = await call('/fetch', { ids: [...acknowledged, 'after'] });
  expect((result as unknown[]).filter((record) => record === null)).toEqual([]);
});
