import type { Browser } from 'playwright-core';
import { launchBrowser, type Visit, violations, visit } from '../support/console/browser.js';
import { ALL, type ConsoleSite, CREDENTIALS, HOSTILE, startConsoleSite } from '../support/console/site.js';
import { eventually } from '../support/eventually.js';

jest.setTimeout(240_000);

let site: ConsoleSite;
let browser: Browser;
let tab: Visit | undefined;

beforeAll(async () => {
  [site, browser] = await Promise.all([startConsoleSite(), launchBrowser()]);
});

afterEach(async () => {
  const complaints = tab?.complaints ?? [];
  await tab?.context.close();
  tab = undefined;
  expect(complaints).toEqual([]);
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

async function open(place = '', credentials: readonly string[] = ALL) {
  tab = await visit(browser, site.url + place, credentials);
  return tab.page;
}

it('signs in by a link once: the address holds no code afterwards, and no token at any time', async () => {
  const made = await site.call('/console/api/codes', { body: { credentials: ALL } });
  const { code } = made as { code: string };
  const page = await open(`#sign-in=${code}`, []);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  expect(page.url()).toBe(`${site.url}#/`);
  await page.getByRole('link', { name: 'Dead letters' }).waitFor();
  await tab?.context.close();

  const again = await open(`#sign-in=${code}`, []);
  await again.getByText('The link was used already').waitFor();
  expect(await again.getByRole('link', { name: 'Dead letters' }).count()).toBe(0);
});

it('why did this webhook not arrive, and send it again', async () => {
  const sent = (await site.call(`/queue/v2/publish/${site.receiver}/broken`, {
    as: CREDENTIALS.queue,
    headers: { 'Upstash-Retries': '0', 'Upstash-Label': HOSTILE.slice(0, 8) },
    body: { order: 17, note: HOSTILE },
  })) as { messageId: string };
  const page = await open('#/queue/default/dead-letters');
  const row = page.getByRole('row').filter({ hasText: sent.messageId });
  await eventually(async () => {
    await page.getByRole('button', { name: 'Refresh' }).click();
    expect(await row.count()).toBe(1);
  });
  await row.getByRole('button', { name: sent.messageId }).click();
  await page.getByText('the shop is closed').last().waitFor();
  // what it brought is text
  expect(await page.getByText('<script>document.title').count()).toBeGreaterThan(0);
  expect(await page.title()).toContain('Dead letters');
  expect(await violations(page)).toEqual([]);

  await page.getByRole('link', { name: 'Its story' }).click();
  await page.getByRole('list', { name: 'What happened' }).getByText('500').first().waitFor();
  await page.goBack();
  site.mend();
  await page.getByRole('row').filter({ hasText: sent.messageId }).getByRole('button').click();
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  await page.getByText('1 sent again').waitFor();
  await eventually(() => expect(site.received.filter((path) => path === 'POST /broken')).toHaveLength(2));
});
