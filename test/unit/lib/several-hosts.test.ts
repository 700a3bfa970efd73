import { postgresAddress, sessionKindProblem } from '../../../src/lib/postgres/postgres-address.js';
import { addressesOf } from '../../../src/lib/several-hosts.js';

test('an address with several hosts is one for each', () => {
  expect(addressesOf('amqp://me:a%2Cb@one:1,two,[::1]:3/v%2Fh?heartbeat=3')).toEqual([
    'amqp://me:a%2Cb@one:1/v%2Fh?heartbeat=3',
    'amqp://me:a%2Cb@two/v%2Fh?heartbeat=3',
    'amqp://me:a%2Cb@[::1]:3/v%2Fh?heartbeat=3',
  ]);
});

test('a comma elsewhere names no second host', () => {
  for (const one of ['amqp://me:a,b@one:1/', 'postgres://one/a,b', 'postgres://one?options=a,b', 'nonsense,'])
    expect(addressesOf(one)).toEqual([one]);
});

test('of several hosts of Postgres the one that takes writes is wanted, unless the address says otherwise', () => {
  expect(postgresAddress('postgres://me:w@one:1,two:2/d')).toEqual({
    urls: ['postgres://me:w@one:1/d', 'postgres://me:w@two:2/d'],
    kind: 'read-write',
  });
  expect(postgresAddress('postgres://one,two/d?target_session_attrs=any').kind).toBe('any');
  expect(postgresAddress('postgres://one/d')).toEqual({ urls: ['postgres://one/d'], kind: undefined });
  expect(postgresAddress('postgres://one/d?target_session_attrs=any').kind).toBeUndefined();
  expect(postgresAddress('postgres://one/d?target_session_attrs=primary&sslmode=disable')).toEqual({
    urls: ['postgres://one/d?sslmode=disable'],
    kind: 'primary',
  });
});

test('an unknown word for what is wanted is told', () => {
  expect(sessionKindProblem('postgres://one,two/d?target_session_attrs=writable')).toMatch(
    /expected any, read-write/,
  );
  expect(sessionKindProblem('postgres://one,two/d?target_session_attrs=standby')).toBeUndefined();
});
