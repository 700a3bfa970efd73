import { HttpError } from '../../../src/http/errors.js';
import { formatError, translateError } from '../../../src/services/vector/errors.js';

const thrown = (message: string, code?: string) =>
  Object.assign(new Error(message), code === undefined ? {} : { code });

test.each([
  ['connection refused', thrown('connect ECONNREFUSED 10.0.0.1:5432', 'ECONNREFUSED'), 503],
  ['connection lost', thrown('Connection terminated unexpectedly'), 503],
  ['connection not made in time', thrown('timeout expired'), 503],
  ['server shuts down', thrown('terminating connection due to administrator command', '57P01'), 503],
  ['server starts', thrown('the database system is starting up', '57P03'), 503],
  ['out of connections', thrown('sorry, too many clients already', '53300'), 503],
  ['login refused', thrown('password authentication failed for user "portico"', '28P01'), 503],
  ['no such database', thrown('database "none" does not exist', '3D000'), 503],
  ['unknown certificate', thrown('self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT'), 503],
  ['TLS not spoken', thrown('The server does not support SSL connections'), 503],
  ['no password', thrown('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'), 503],
  ['table gone', thrown('relation "x" does not exist', '42P01'), 503],
  ['read-only replica', thrown('cannot execute INSERT in a read-only transaction', '25006'), 503],
  ['deadlock', thrown('deadlock detected', '40P01'), 503],
  ['statement cancelled', thrown('canceling statement due to statement timeout', '57014'), 504],
  ['stalled server', thrown('Query read timeout'), 504],
  ['data refused', thrown('unsupported Unicode escape sequence', '22P05'), 422],
  ['half precision overflow', thrown('"70000" is out of range for type halfvec', '22003'), 422],
  ['syntax error', thrown('syntax error at or near', '42601'), 502],
  ['our own mistake', new TypeError('x is not a function'), 500],
])('%s', (_name, error, status) => {
  const translated = translateError(error);
  expect(translated.status).toBe(status);
  expect(translated.cause).toBe(error);
  expect(translated.message).not.toContain(error.message);
});

test('an error meant for the client stays as it is', () => {
  const error = new HttpError('unprocessable', 'no');
  expect(translateError(error)).toBe(error);
});

test("the body is the contract's", () => {
  expect(formatError(new HttpError('unprocessable', 'no'))).toEqual({ error: 'no', status: 422 });
  expect(formatError(new HttpError('unauthorized'))).toEqual({
    error: 'Unauthorized: Invalid auth token',
    status: 401,
  });
});
