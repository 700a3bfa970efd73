import { randomBytes } from 'node:crypto';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = `idempotency_${randomBytes(4).toString('hex')}`;
const document = { vector: { database: { schema: SCHEMA }, indexes: [{ dimension: 2 }] } };
let gateways: RunningGateway[];

beforeAll(async () => {
  gateways = await Promise.all([startGateway(document), startGateway(document)]);
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await dropSchema(SCHEMA);
});

const ask = (at: number, key: string, path: string, body: unknown, headers = {}) =>
  vectorCaller(`${(gateways[at] as RunningGateway).url}/vector`)(path, body, {
    headers: { 'idempotency-key': key, ...headers },
  });

test('a write with the same key is done once, whichever gateway gets it', async () => {
  const record = { id: 'a', vector: [1, 0] };
  await eventually(async () => expect((await ask(0, 'upsert', '/upsert', record)).status).toBe(200));
  const removed = await ask(0, 'delete', '/delete', { ids: ['a'] });
  expect(removed).toMatchObject({ status: 200, result: { deleted: 1 } });
  // neither is made again: the record stays away, and the deletion still tells of one
  for (const at of [0, 1]) {
    const again = await ask(at, 'upsert', '/upsert', record);
    expect(again.result).toBe('Success');
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect((await ask(at, 'delete', '/delete', { ids: ['a'] })).result).toEqual({ deleted: 1 });
  }
  expect((await ask(0, 'x', '/fetch', { ids: ['a'] })).result).toEqual([null]);
  expect((await ask(1, 'upsert', '/upsert', { id: 'a', vector: [0, 1] })).status).toBe(422);
  expect((await ask(1, 'upsert', '/upsert/other', record)).status).toBe(422);
});

test('what was refused may be sent again', async () => {
  expect((await ask(0, 'refused', '/upsert', { id: 'b', vector: [1] })).status).toBe(422);
  const mended = await ask(0, 'refused', '/upsert', { id: 'b', vector: [1, 1] });
  expect(mended.status).toBe(200);
  expect(mended.headers.get('idempotent-replayed')).toBeNull();
});

test('a stream of records takes no key', async () => {
  const line = `${JSON.stringify({ id: 'c', vector: [1, 1] })}\n`;
  const reply = await ask(0, 'stream', '/upsert', line, { 'content-type': 'application/x-ndjson' });
  expect(reply.status).toBe(400);
});

test('a key that is over is as good as new', async () => {
  await ask(0, 'over', '/delete', { ids: ['none'] });
  await withPostgres((client) =>
    client.query(`update "${SCHEMA}".kept_calls set expires_at = now() - interval '1 s'`),
  );
  const again = await ask(0, 'over', '/delete', { ids: ['none'] });
  expect(again.status).toBe(200);
  expect(again.headers.get('idempotent-replayed')).toBeNull();
});
