import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import type { Browser } from 'playwright-core';
import { launchBrowser, visit } from '../support/console/browser.js';
import { ALL, type ConsoleSite, startConsoleSite } from '../support/console/site.js';
import { backendAddress } from '../support/environment.js';

jest.setTimeout(600_000);

const KEYS = 1_000_000;
/** How long the open page is watched, in ms. */
const WATCH_MS = 30_000;

let site: ConsoleSite;
let browser: Browser;
let redis: Redis;

/** In one script each time, in slices, so that Redis answers in between. */
async function eachKey(command: string): Promise<void> {
  const script = `for i = ARGV[1], ARGV[1] + 9999 do redis.call('${command}', 'console-load:' .. i${command === 'SET' ? ", 'x'" : ''}) end`;
  for (let from = 0; from < KEYS; from += 10_000) await redis.eval(script, 0, from);
}

beforeAll(async () => {
  browser = await launchBrowser();
  site = await startConsoleSite();
  redis = new Redis(backendAddress('PORTICO_REDIS_URL'));
  await eachKey('SET');
});

afterAll(async () => {
  await browser?.close();
  await eachKey('UNLINK');
  redis?.disconnect();
  await site?.stop();
});

it('shows a window of a million keys at once, and asks for no more', async () => {
  const tab = await visit(browser, site.url, ALL);
  await tab.page.getByRole('heading', { name: 'Overview' }).waitFor();
  let asked = 0;
  tab.page.on('request', (request) => {
    if (new URL(request.url()).pathname.startsWith('/kv')) asked += 1;
  });
  const begun = performance.now();
  await tab.page.getByRole('link', { name: 'Keys' }).click();
  await tab.page.getByText('keys, there are more').waitFor();
  console.log(
    `a million keys: first window after ${(performance.now() - begun).toFixed(0)} ms, ${asked} requests`,
  );
  expect(asked).toBeLessThan(10);
  expect(await tab.page.getByRole('row').count()).toBeLessThan(500);
  await tab.context.close();
});

it('costs little while it is open', async () => {
  const tab = await visit(browser, site.url, ALL);
  await tab.page.locator('canvas').first().waitFor();
  // clock ticks of 10 ms, user and system
  const ticks = () => {
    const fields =
      readFileSync(`/proc/${site.gateway.process.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return Number(fields[11]) + Number(fields[12]);
  };
  const before = ticks();
  await tab.page.waitForTimeout(WATCH_MS);
  const open = ticks() - before;
  await tab.context.close();
  const idle = ticks();
  await new Promise((resolve) => setTimeout(resolve, WATCH_MS));
  const closed = ticks() - idle;
  const share = ((open - closed) * 10 * 100) / WATCH_MS;
  console.log(`an open overview costs ${share.toFixed(2)} % of a core`);
  // 1 % on a machine that does nothing else
  expect(share).toBeLessThan(5);
});
