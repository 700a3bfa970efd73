import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';

const names = ['UPSTASH_REDIS_REST_URL', 'UPSTASH_REDIS_REST_TOKEN', 'QSTASH_URL', 'QSTASH_TOKEN'];
names.push('QSTASH_CURRENT_SIGNING_KEY', 'QSTASH_NEXT_SIGNING_KEY');
const bindings = Object.fromEntries(names.map((name) => [name, process.env[name]]));

const { outputFiles } = await build({
  entryPoints: ['worker.js'],
  bundle: true,
  write: false,
  format: 'esm',
  conditions: ['workerd', 'worker', 'browser'],
  external: ['node:*', 'crypto'],
});
const worker = new Miniflare({
  modules: [{ type: 'ESModule', path: 'worker.js', contents: outputFiles[0].text }],
  bindings,
  compatibilityDate: '2025-09-01',
  compatibilityFlags: ['nodejs_compat'],
  host: '127.0.0.1',
});

try {
  const url = (await worker.ready).origin;
  const get = async (path) => (await fetch(url + path)).json();
  const { hits } = await get('/hits');
  assert.equal((await get('/hits')).hits, hits + 1);
  assert.match((await get('/later')).messageId, /^msg_/);
  for (let i = 0; (await get('/done')).done !== 'yes'; i++) {
    assert.ok(i < 60, 'the queue did not call the worker');
    await sleep(500);
  }
  assert.equal((await fetch(`${url}/work`, { method: 'POST', body: '{}' })).status, 401);
  console.log('ok');
} finally {
  await worker.dispose();
}
