import type { Browser } from 'playwright-core';
import { launchBrowser, type Visit, violations, visit } from '../support/console/browser.js';
import { clear, type Filled, fill, HOSTILE_KEY, PREFIX } from '../support/console/fill.js';
import { ALL, type ConsoleSite, CREDENTIALS, HOSTILE, startConsoleSite } from '../support/console/site.js';
import { eventually } from '../support/eventually.js';

jest.setTimeout(240_000);

let site: ConsoleSite;
let browser: Browser;
let filled: Filled;
let tab: Visit | undefined;

beforeAll(async () => {
  browser = await launchBrowser();
  site = await startConsoleSite();
  filled = await fill(site);
});

afterEach(async () => {
  const complaints = tab?.complaints ?? [];
  await tab?.context.close();
  tab = undefined;
  expect(complaints).toEqual([]);
});

afterAll(async () => {
  await browser?.close();
  if (site !== undefined) await clear(site);
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
  const sent = (await site.call(`/queue/v2/publish/${site.receiver}/broken?mine`, {
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
  const mine = () => site.received.filter((path) => path === 'POST /broken?mine');
  await eventually(() => expect(mine()).toHaveLength(2));
});

it('what is in this key, how large is it and when was it last touched; and change it', async () => {
  const page = await open('#/kv/default/keys');
  await page.getByLabel('Pattern').fill(`${PREFIX}user:*`);
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('1 keys').waitFor();
  await page.getByRole('link', { name: `${PREFIX}user:1` }).click();
  const facts = page.locator('dl');
  await expect(facts.innerText()).resolves.toMatch(/In memory\s+\d+ B[\s\S]*Last touched\s+.* ago/);
  await page.getByRole('button', { name: 'Edit city' }).click();
  await page.getByLabel('Value', { exact: true }).last().fill('Kiel');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved.').waitFor();
  const { result } = (await site.call(`/kv/hget/${PREFIX}user:1/city`, {
    method: 'GET',
    as: CREDENTIALS.kv,
  })) as {
    result: string;
  };
  expect(result).toBe('Kiel');
  // a key whose name and value are markup
  await page.getByLabel('Pattern').fill(`${PREFIX}<*`);
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('link', { name: HOSTILE_KEY }).click();
  await page.locator('dl').getByText('string', { exact: true }).waitFor();
  await eventually(async () =>
    expect(await page.getByRole('textbox', { name: 'Value' }).inputValue()).toBe(HOSTILE),
  );
  expect(await page.locator('script:not([src])').count()).toBe(0);
});

it('which consumer is behind, and where it goes on', async () => {
  const page = await open('#/broker/default/groups');
  const as = CREDENTIALS.broker;
  const row = page.getByRole('row').filter({ hasText: filled.group });
  await row.waitFor();
  const lagOf = async () => {
    const path = `/broker/lag/${filled.group}`;
    const lags = (await site.call(path, { method: 'GET', as })) as { lag: number }[];
    return lags.reduce((sum, each) => sum + each.lag, 0);
  };
  const lag = await lagOf();
  expect(lag).toBeGreaterThan(0);
  expect(await row.getByRole('cell').last().innerText()).toBe(String(lag));
  await row.getByRole('link').click();
  const partitions = page.getByRole('region', { name: 'Lag by partition' });
  await partitions.waitFor();
  await site.call(`/broker/delete-consumer/${filled.group}/one`, { as });
  await page.getByLabel('At').selectOption('latest');
  await page.getByRole('button', { name: 'Reset' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click();
  await page.getByText('It goes on there.').waitFor();
  expect(await lagOf()).toBe(0);
});

it('finds records near to one, and marks the place in a filter that is wrong', async () => {
  const page = await open('#/vector/default/search?like=film-001');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('10 found').waitFor();
  await page.getByLabel('Filter').fill("genre = = 'drama'");
  await page.getByRole('button', { name: 'Search' }).click();
  const notice = page.getByRole('alert');
  await notice.waitFor();
  const column = Number(/column (\d+)/.exec(await notice.innerText())?.[1]);
  const marked = (await notice.locator('pre').innerText()).split('\n');
  expect(marked[1]?.indexOf('^')).toBe(column - 1);
});

it('changes nothing with a token that may only read', async () => {
  const page = await open('', [CREDENTIALS.kvReadOnly, CREDENTIALS.vectorReadOnly]);
  await page.getByText('Key-value (read only)').waitFor();
  await page.getByRole('link', { name: 'Keys' }).click();
  await page.getByLabel('Key').fill(`${PREFIX}user:1`);
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByText('Ada').waitFor();
  const changing = /^(Edit|Remove|Delete|Save|Add|New|Expire)/;
  expect(await page.getByRole('button', { name: changing }).count()).toBe(1);
  await page.getByRole('link', { name: 'Records' }).click();
  await page.getByRole('button', { name: 'film-002' }).click();
  await page.getByText('a science fiction').last().waitFor();
  // what is left adds credentials
  expect(await page.getByRole('button', { name: changing }).allInnerTexts()).toEqual(['Add credentials']);
  await page.getByRole('link', { name: 'Command line' }).click();
  await page.getByLabel('Command').fill(`SET ${PREFIX}forbidden 1`);
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByText('NOPERM').first().waitFor();
});
