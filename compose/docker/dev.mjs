import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { root, stateDir } from '../state/profile.mjs';
import { parseEnvFile } from '../state/secrets.mjs';

// The program of the image portico:dev: `portico start`, with the backends' programs of the image and data in one volume.

/** Where the image has the programs; they know themselves by the link. */
const programs = '/opt/portico/programs';
const resetLimitMs = 60_000;

/** Tokens that everybody knows; those that are given win. */
function takeTestTokens() {
  const known = parseEnvFile(readFileSync(join(root, 'compose/docker/test-tokens.env'), 'utf8'));
  for (const [name, token] of Object.entries(known)) process.env[name] ||= token;
}

/** @returns {Promise<[number, string]>} */
function reset() {
  const args = ['--disable-warning=TimeoutNegativeWarning', join(root, 'compose/docker/reset.mjs')];
  return new Promise((resolve) =>
    execFile(process.execPath, args, { timeout: resetLimitMs }, (error) =>
      resolve(error === null ? [200, 'reset'] : [500, error.message]),
    ),
  );
}

/** Answers `POST /reset` of whoever knows the key-value token: for tests that cannot run a command in this container. */
function serveReset(port) {
  const authorization = `Bearer ${process.env.PORTICO_KV_TOKEN}`;
  /** @param {import('node:http').IncomingMessage} request @returns {Promise<[number, string]>} */
  const answer = async ({ url, method, headers }) => {
    if (url !== '/reset') return [404, 'POST /reset'];
    if (method !== 'POST') return [405, 'POST /reset'];
    if (headers.authorization !== authorization) return [401, 'the key-value token is missing'];
    return reset();
  };
  createServer(async (request, response) => {
    request.resume();
    const [status, text] = await answer(request);
    response.writeHead(status, { 'content-type': 'text/plain' }).end(`${text}\n`);
  }).listen(port);
}

if (!existsSync(join(stateDir, 'programs'))) symlinkSync(programs, join(stateDir, 'programs'));
const { PORTICO_TEST_TOKENS: fixed, PORTICO_TEST_RESET_PORT: port = '8071' } = process.env;
// the gateway would warn of variables that are not its own
delete process.env.PORTICO_TEST_TOKENS;
delete process.env.PORTICO_TEST_RESET_PORT;
if (fixed === 'on') {
  takeTestTokens();
  serveReset(Number(port));
}
process.argv.push('start');
await import(new URL('../portico.mjs', import.meta.url).href);
