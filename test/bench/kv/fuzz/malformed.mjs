import { contractHeaders, credentials, message } from './message.mjs';

/**
 * @typedef {import('./random.mjs').Random} Random
 * @typedef {import('./requests.mjs').Context} Context
 * @typedef {import('./requests.mjs').Request} Request
 */

const ENDPOINTS = ['/kv', '/kv/pipeline', '/kv/multi-exec'];

/** Bodies that are no command and no rows of them, wherever they are sent. */
const NO_COMMANDS = [
  '',
  ' ',
  '\n',
  'null',
  'true',
  '""',
  '"get"',
  '123',
  '-',
  '{}',
  '{"command":["GET","a"]}',
  '[]',
  '[null]',
  '[{}]',
  '[[[]]]',
  '[[["GET","a"]]]',
  '[["GET",null]]',
  '[["GET",{"a":1}]]',
  '[["GET",["a"]]]',
  '[["GET","a"],null]',
  '[["GET","a"],"GET"]',
  '[["GET","a"],["GET",[]]]',
  '["GET",null]',
  '["GET",[]]',
  '["GET",{}]',
  '["GET","a"',
  '["GET","a",]',
  '["GET" "a"]',
  "['GET','a']",
  '["GET","a"]]',
  '[["GET","a"]',
  '["GET","a"]["GET","a"]',
  '["GET",NaN]',
  '["GET",undefined]',
  '["GET",01]',
  '["GET",1.]',
  '["GET",.5]',
  '["GET",+1]',
  '["GET","\\x00"]',
  '["GET","\\ud800',
  '["GET","a\nb"]',
  '\ufeff["GET","a"]',
  '*2\r\n$3\r\nGET\r\n$1\r\na\r\n',
  'GET a',
  'command=GET&key=a',
  '["GET","a"]\0',
  '// comment\n["GET","a"]',
];

/** A body that is wrong for certain. @param {Random} random @param {Context} context @returns {Request} */
export function malformed(random, context) {
  const body = random.weighted([
    [20, Buffer.from(random.pick(NO_COMMANDS))],
    [1, Buffer.from('["GET","a"]', 'utf16le')],
    [2, Buffer.from('["GET","\xff\xfe"]', 'latin1')],
    [2, random.bytes(1 + random.below(200))],
    [0.2, Buffer.from('['.repeat(1 + random.below(200_000)))],
    [0.2, Buffer.from(`[${'['.repeat(50_000)}${']'.repeat(50_000)}]`)],
    [0.2, Buffer.from(`{"a":${'['.repeat(5_000)}`)],
  ]);
  const { access, headers, query } = credentials(random, context.tokens);
  const contract = contractHeaders(random);
  const target = `${random.pick(ENDPOINTS)}${query === '' ? '' : `?${query}`}`;
  const wire = message({ target, headers: [...headers, ...contract.headers], body });
  // rows without a command are entries of their own in a pipeline
  const form = access === 'none' ? 'error' : 'loose';
  return { kind: 'malformed', wire, expected: [{ form, statuses: [access === 'none' ? 401 : 400] }] };
}

/** What may run whatever becomes of it: mutation makes other commands of it. */
const HARMLESS = [
  '["SET","any:1","value","EX",100]',
  '["GET","any:1"]',
  '["MGET","any:1","any:2",3,4.5,true]',
  '["HSET","hash:1","field","valüe"]',
  '["LRANGE","list:1",0,-1]',
  '["ECHO","\\u00e9\\n\\"\\\\"]',
  '["EVAL","return ARGV[1]",0,9007199254740993]',
];

/** A valid body with some bytes changed, taken out, doubled or moved. @param {Random} random @param {Context} context @returns {Request} */
export function mutated(random, context) {
  const endpoint = random.pick(ENDPOINTS);
  const valid =
    endpoint === '/kv'
      ? random.pick(HARMLESS)
      : `[${random.list(1 + random.below(4), () => random.pick(HARMLESS)).join(',')}]`;
  let body = Buffer.from(valid);
  for (let i = 0; i <= random.below(4); i++) body = mutate(body, random);
  const contract = contractHeaders(random);
  const headers = [['Authorization', `Bearer ${context.tokens.full}`], ...contract.headers];
  const form = { '/kv': 'one', '/kv/pipeline': 'rows', '/kv/multi-exec': 'transaction' }[endpoint];
  const { base64, format } = contract;
  const wire = message({ target: endpoint, headers, body, chunked: random.chance(0.1) ? 3 : 0 });
  return { kind: 'mutated', wire, expected: [{ form, any: true, base64, format }] };
}

function mutate(body, random) {
  const at = random.below(body.length + 1);
  const end = Math.min(body.length, at + 1 + random.below(6));
  const some = Buffer.from(
    random.pick(['"', '[', ']', ',', '\\', '\0', '\xff', '1', '-', 'null', '{}', ' ', '\\u0000']),
    'latin1',
  );
  const make = random.weighted([
    [4, () => [body.subarray(0, at), random.bytes(1), body.subarray(Math.min(body.length, at + 1))]],
    [4, () => [body.subarray(0, at), some, body.subarray(at)]],
    [3, () => [body.subarray(0, at), body.subarray(end)]],
    [2, () => [body.subarray(0, end), body.subarray(at)]],
    [1, () => [body.subarray(0, at)]],
  ]);
  return Buffer.concat(make());
}
