import fc from 'fast-check';
import { HttpError } from '../../../src/http/errors.js';
import { listAnswer, singleAnswer } from '../../../src/services/kv/api/answer-format.js';
import { transactionResults } from '../../../src/services/kv/api/batch-handlers.js';
import { replyJson } from '../../../src/services/kv/api/reply.js';
import { formatError } from '../../../src/services/kv/errors.js';
import { RespError, RespStatus, type RespValue } from '../../../src/services/kv/resp/resp-decoder.js';

const text = (word: string) => Buffer.from(word);
const status = (word: string) => new RespStatus(Buffer.from(word));

test.each([
  [null, '{"result":null}', '{"result":null}'],
  ['9223372036854775807', '{"result":9223372036854775807}', '{"result":9223372036854775807}'],
  [text('OK'), '{"result":"OK"}', '{"result":"OK"}'],
  [status('OK'), '{"result":"OK"}', '{"result":"OK"}'],
  [status('PONG'), '{"result":"PONG"}', '{"result":"UE9ORw=="}'],
  [undefined, '{"result":null}', '{"result":null}'],
  [text('PONG'), '{"result":"PONG"}', '{"result":"UE9ORw=="}'],
  [text(''), '{"result":""}', '{"result":""}'],
  [text('a"\n\\é'), '{"result":"a\\"\\n\\\\é"}', '{"result":"YSIKXMOp"}'],
  [Buffer.from([0x61, 0xff, 0x62]), '{"result":"a\ufffdb"}', '{"result":"Yf9i"}'],
  [
    [text('OK'), '1', null, [text('OK')]],
    '{"result":["OK",1,null,["OK"]]}',
    '{"result":["T0s=",1,null,["T0s="]]}',
  ],
  [[], '{"result":[]}', '{"result":[]}'],
  [new RespError('ERR "x"'), '{"error":"ERR \\"x\\""}', '{"error":"ERR \\"x\\""}'],
  [[new RespError('ERR x')], '{"result":["ERR x"]}', '{"result":["RVJSIHg="]}'],
])('%j', (value, plain, base64) => {
  expect(replyJson(value, 'utf8')).toBe(plain);
  expect(replyJson(value, 'base64')).toBe(base64);
});

test('any bytes come back from base64', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const { result } = JSON.parse(replyJson([Buffer.from(bytes)], 'base64')) as { result: [string] };
      expect(Buffer.from(result[0], 'base64')).toEqual(Buffer.from(bytes));
    }),
  );
});

describe('transactions', () => {
  test('one result a row, failures in place', () => {
    const results: RespValue[] = ['1', new RespError('WRONGTYPE no')];
    const replies = [status('OK'), status('QUEUED'), status('QUEUED'), results];
    expect(transactionResults(replies)).toEqual(results);
    expect(listAnswer(results, 'utf8')).toMatchObject({
      body: '[{"result":1},{"error":"WRONGTYPE no"}]',
    });
  });

  test("a discarded one says the first row's error", () => {
    const replies = [
      status('OK'),
      status('QUEUED'),
      new RespError('ERR arity'),
      new RespError('EXECABORT gone'),
    ];
    expect(transactionResults(replies)).toEqual(new RespError('ERR arity'));
    expect(transactionResults([status('OK'), status('QUEUED'), undefined])).toBeInstanceOf(RespError);
  });
});

test.each([
  ['ERR no', 400],
  ['BUSY a script runs', 503],
  ['BUSYGROUP exists', 400],
  ['LOADING data', 503],
])('%s: status %d', (error, expected) => {
  expect(singleAnswer(new RespError(error), 'utf8')).toMatchObject({ status: expected });
});

test.each([
  [new HttpError('unauthorized'), 'WRONGPASS invalid or missing auth token'],
  [new HttpError('not_found'), 'ERR There is nothing at this path.'],
  [new HttpError('invalid_request', 'NOPERM no'), 'NOPERM no'],
  [new HttpError('invalid_request', 'ERR no'), 'ERR no'],
])('error text %#', (error, expected) => {
  expect(formatError(error)).toEqual({ error: expected });
});

test('a deadline says that the outcome is unknown', () => {
  expect(JSON.stringify(formatError(new HttpError('timeout')))).toMatch(/^\{"error":"ERR .*unknown"\}$/);
});
