import { randomBytes } from 'node:crypto';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { type KvCaller, kvCaller } from '../../support/kv/kv.js';
import { TOKENS } from '../../support/tokens.js';

const ID = randomBytes(4).toString('hex');
const PREFIX = `kv-acl:${ID}:`;
const USER = `acl-test-${ID}`;

let gateway: RunningGateway;
let other: RunningGateway;
let admin: KvCaller;

/** The token that `ACL RESTTOKEN` gives. */
async function tokenOf(...words: string[]): Promise<string> {
  return ((await admin.run('ACL', ...words)).body as { result: string }).result;
}

const as = (token: string, at = gateway) => kvCaller(`${at.url}/kv`, token);

beforeAll(async () => {
  [gateway, other] = await Promise.all([startGateway({ kv: {} }), startGateway({ kv: {} })]);
  admin = kvCaller(`${gateway.url}/kv`);
  await eventually(async () => expect((await admin.run('PING')).status).toBe(200));
});

beforeEach(async () => {
  const rules = ['reset', 'on', '>first', '>second', `~${PREFIX}*`, '+get', '+set', '+xread', '+ping'];
  expect((await admin.run('ACL', 'SETUSER', USER, ...rules)).text).toBe('{"result":"OK"}');
});

afterAll(async () => {
  await admin.run('ACL', 'DELUSER', USER);
  await admin.run('DEL', `${PREFIX}a`, `${PREFIX}b`);
  await Promise.all([gateway.stop(), other.stop()]);
});

test('Redis enforces what the user may do, on every gateway', async () => {
  const token = await tokenOf('RESTTOKEN', USER, 'first');
  for (const at of [gateway, other]) {
    const user = as(token, at);
    expect((await user.run('SET', `${PREFIX}a`, '1')).text).toBe('{"result":"OK"}');
    expect(await user.run('GET', 'elsewhere')).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/^NOPERM /) },
    });
    expect((await user.run('DEL', `${PREFIX}a`)).body).toEqual({ error: expect.stringMatching(/^NOPERM /) });
    expect((await user.pipeline(['GET', `${PREFIX}a`], ['DEL', `${PREFIX}a`])).body).toEqual([
      { result: '1' },
      { error: expect.stringMatching(/^NOPERM /) },
    ]);
    // Portico's own rules hold too
    expect((await user.run('CLIENT', 'KILL', 'TYPE', 'normal')).status).toBe(400);
  }
  // others do not work in the user's name
  expect((await admin.run('ACL', 'WHOAMI')).text).toBe('{"result":"default"}');
});

test('rows of a transaction that the user may not begin do not run one by one', async () => {
  const user = as(await tokenOf('RESTTOKEN', USER, 'first'));
  await admin.run('SET', `${PREFIX}b`, 'before');
  expect(await user.transaction(['SET', `${PREFIX}b`, 'after'], ['GET', `${PREFIX}b`])).toMatchObject({
    status: 400,
    body: { error: expect.stringMatching(/^NOPERM .*multi/) },
  });
  expect((await admin.run('GET', `${PREFIX}b`)).text).toBe('{"result":"before"}');
  // and one that can be begun and not ended leaves nothing behind
  await admin.run('ACL', 'SETUSER', USER, '+multi');
  expect((await user.transaction(['SET', `${PREFIX}b`, 'after'])).status).toBe(400);
  expect((await user.run('GET', `${PREFIX}b`)).text).toBe('{"result":"before"}');
  await admin.run('ACL', 'SETUSER', USER, '+exec');
  expect((await user.transaction(['SET', `${PREFIX}b`, 'after'], ['GET', `${PREFIX}b`])).body).toEqual([
    { result: 'OK' },
    { result: 'after' },
  ]);
});

test('a token dies with its password, with its user, and follows the user’s permissions', async () => {
  const first = as(await tokenOf('RESTTOKEN', USER, 'first'));
  const second = as(await tokenOf('RESTTOKEN', USER, 'second'));
  for (const user of [first, second]) expect((await user.run('GET', `${PREFIX}a`)).status).toBe(200);
  await admin.run('ACL', 'SETUSER', USER, '-get', '<first');
  await eventually(async () =>
    expect(await first.run('PING')).toMatchObject({
      status: 401,
      body: { error: expect.stringMatching(/^WRONGPASS /) },
    }),
  );
  expect((await second.run('GET', `${PREFIX}a`)).body).toEqual({ error: expect.stringMatching(/^NOPERM /) });
  await admin.run('ACL', 'DELUSER', USER);
  // Redis ends the user's connections: a command that is on its way then is told as unknown (503)
  await eventually(async () => {
    const { status } = await second.run('PING');
    expect([401, 503]).toContain(status);
    expect(status).toBe(401);
  });
  expect((await second.transaction(['PING'])).status).toBe(401);
});

test('a generated token is a password and a token', async () => {
  const token = await tokenOf('GENTOKEN', USER);
  expect((await as(token).run('PING')).status).toBe(401);
  await admin.run('ACL', 'SETUSER', USER, `>${token}`);
  for (const at of [gateway, other]) expect((await as(token, at).run('PING')).status).toBe(200);
  const fixed = await tokenOf('GENTOKEN', USER, 'secret');
  expect(await tokenOf('GENTOKEN', USER, 'secret')).toBe(fixed);
  expect(await tokenOf('GENTOKEN', USER)).not.toBe(token);
});

test.each([
  [['RESTTOKEN', 'nobody-here', 'x'], 'ERR Wrong password or user "nobody-here" does not exist'],
  [['RESTTOKEN', USER, 'wrong'], `ERR Wrong password or user "${USER}" does not exist`],
  [['resttoken', USER], "ERR wrong number of arguments for 'acl|resttoken' command"],
  [['RESTTOKEN', USER, 'first', 'more'], "ERR wrong number of arguments for 'acl|resttoken' command"],
  [['GENTOKEN'], "ERR wrong number of arguments for 'acl|gentoken' command"],
  [['GENTOKEN', 'x'.repeat(5_000)], 'ERR user and password are too long for a token'],
])('ACL %j: %s', async (words, error) => {
  expect(await admin.run('ACL', ...words)).toMatchObject({ status: 400, body: { error } });
});

test('in a pipeline it comes after the rows before it; in a transaction it cannot be', async () => {
  const { body } = await admin.pipeline(
    ['ACL', 'SETUSER', USER, '>third'],
    ['ACL', 'RESTTOKEN', USER, 'third'],
  );
  const [, { result }] = body as [unknown, { result: string }];
  expect((await as(result).run('PING')).status).toBe(200);
  expect((await admin.transaction(['ACL', 'RESTTOKEN', USER, 'first'])).status).toBe(400);
  const readOnly = as(TOKENS.kvReadOnly);
  expect((await readOnly.run('ACL', 'RESTTOKEN', USER, 'first')).body).toEqual({
    error: expect.stringMatching(/^NOPERM /),
  });
});

test.each(['acl_', 'acl_AAAA', `gen_${'A'.repeat(80)}`, `acl_${'x'.repeat(6_000)}`])(
  'a forged token (%.12s) is wrong',
  async (token) => {
    expect((await as(token).run('PING')).status).toBe(401);
  },
);

test('a token of one database is none of another', async () => {
  const url = process.env.PORTICO_REDIS_URL;
  const two = await startGateway(
    {
      kv: {
        databases: [
          { name: 'one', path: '/one', url, token: TOKENS.kv },
          { name: 'two', path: '/two', url, token: 'another-token-0123456789abcdefgh' },
        ],
      },
    },
    { PORTICO_KV_TOKEN: '', PORTICO_KV_READONLY_TOKEN: '' },
  );
  try {
    const one = kvCaller(`${two.url}/one`);
    await eventually(async () => expect((await one.run('PING')).status).toBe(200));
    const { result } = (await one.run('ACL', 'RESTTOKEN', USER, 'first')).body as { result: string };
    expect((await kvCaller(`${two.url}/one`, result).run('PING')).status).toBe(200);
    expect((await kvCaller(`${two.url}/two`, result).run('PING')).status).toBe(401);
  } finally {
    await two.stop();
  }
});

test('a user who may begin transactions and not end them runs commands all the same', async () => {
  const rules = ['reset', 'on', '>odd', `~${PREFIX}*`, '+get', '+set', '+multi', '+ping'];
  await admin.run('ACL', 'SETUSER', USER, ...rules);
  const user = as(await tokenOf('RESTTOKEN', USER, 'odd'));
  expect((await user.run('SET', `${PREFIX}a`, 'odd')).text).toBe('{"result":"OK"}');
  expect((await admin.run('GET', `${PREFIX}a`)).text).toBe('{"result":"odd"}');
  await admin.run('ACL', 'SETUSER', USER, 'off');
  await eventually(async () => expect((await user.run('GET', `${PREFIX}a`)).status).toBe(401));
});

test('a gateway whose own login may not end transactions runs commands, and refuses transactions', async () => {
  const rules = ['reset', 'on', '>own', '~*', '+@all', '-exec'];
  await admin.run('ACL', 'SETUSER', USER, ...rules);
  const url = new URL(process.env.PORTICO_REDIS_URL as string);
  url.username = USER;
  url.password = 'own';
  const limited = await startGateway({ kv: {} }, { PORTICO_REDIS_URL: url.href });
  try {
    const kv = kvCaller(`${limited.url}/kv`);
    await eventually(async () =>
      expect((await kv.run('SET', `${PREFIX}a`, '1')).text).toBe('{"result":"OK"}'),
    );
    expect((await kv.transaction(['SET', `${PREFIX}a`, '2'])).body).toEqual({
      error: expect.stringMatching(/NOPERM .*exec/),
    });
    expect((await kv.run('GET', `${PREFIX}a`)).text).toBe('{"result":"1"}');
  } finally {
    await limited.stop();
  }
});

test('who may not look at users gets no tokens, and nobody gets many at once', async () => {
  const user = as(await tokenOf('RESTTOKEN', USER, 'first'));
  for (const words of [
    ['RESTTOKEN', USER, 'second'],
    ['GENTOKEN', USER],
    ['resttoken\0x', USER, 'second'],
  ])
    expect((await user.run('ACL', ...words)).body).toEqual({ error: expect.stringMatching(/^NOPERM /) });
  const { body } = await admin.pipeline(...new Array(25).fill(['ACL', 'GENTOKEN', USER]));
  const errors = (body as { error?: string }[]).filter(({ error }) => error !== undefined);
  expect(errors).toHaveLength(5);
});
