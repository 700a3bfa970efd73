import { mkdirSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { type Colours, launchBrowser, violations, visit } from '../support/console/browser.js';
import { clear, type Filled, fill, HOSTILE_KEY } from '../support/console/fill.js';
import { ALL, type ConsoleSite, startConsoleSite } from '../support/console/site.js';
import { eventually } from '../support/eventually.js';
import { TOKENS } from '../support/tokens.js';

jest.setTimeout(600_000);

/** Where the pictures of the documentation go, when they are wanted. */
const PICTURES = process.env.PORTICO_TEST_PICTURES;

let site: ConsoleSite;
let browser: Browser;
let filled: Filled;

beforeAll(async () => {
  browser = await launchBrowser();
  site = await startConsoleSite();
  filled = await fill(site);
  if (PICTURES !== undefined) mkdirSync(PICTURES, { recursive: true });
});

afterAll(async () => {
  await browser?.close();
  if (site !== undefined) await clear(site);
  await site?.stop();
});

interface Screen {
  readonly name: string;
  readonly place: () => string;
  /** Until what it is about is there. */
  readonly until: (page: Page) => Promise<unknown>;
}

const text = (words: string) => (page: Page) => page.getByText(words).first().waitFor();

const SCREENS: readonly Screen[] = [
  { name: 'overview', place: () => '', until: (page) => page.locator('canvas').first().waitFor() },
  {
    name: 'kv-keys',
    place: () => `#/kv/default/keys?key=${encodeURIComponent('console-shop:user:1')}`,
    until: (page) => Promise.all([text('Lübeck')(page), text('console-shop:product:000')(page)]),
  },
  {
    name: 'kv-hostile',
    place: () => `#/kv/default/keys?key=${encodeURIComponent(HOSTILE_KEY)}`,
    until: text('Encoding'),
  },
  { name: 'kv-commands', place: () => '#/kv/default/commands', until: runCommand },
  { name: 'kv-live', place: () => '#/kv/default/live', until: text('Not watching') },
  {
    name: 'kv-server',
    place: () => '#/kv/default/server',
    until: async (page) => {
      await page.getByRole('button', { name: 'Sample' }).click();
      await text('Estimated from')(page);
    },
  },
  {
    name: 'vector-records',
    place: () => '#/vector/default/records',
    until: async (page) => {
      await page.getByRole('button', { name: 'film-000' }).click();
      await text('More like this')(page);
    },
  },
  {
    name: 'vector-search',
    place: () => '#/vector/default/search?like=film-001',
    until: async (page) => {
      await page.getByRole('button', { name: 'Search' }).click();
      await text('10 found')(page);
    },
  },
  {
    name: 'vector-recall',
    place: () => '#/vector/default/recall',
    until: async (page) => {
      await page.getByRole('button', { name: 'Probe' }).click();
      await page.getByRole('region', { name: 'Probes' }).waitFor();
    },
  },
  {
    name: 'vector-map',
    place: () => '#/vector/default/map',
    until: async (page) => {
      await page.getByRole('button', { name: 'Draw' }).click();
      await text('240 records')(page);
      await page.getByLabel('Coloured by').selectOption('genre');
    },
  },
  {
    name: 'broker-topics',
    place: () => '#/broker/default/topics',
    until: (page) => text(filled.topic)(page),
  },
  {
    name: 'broker-topic',
    place: () => `#/broker/default/topics/${filled.topic}`,
    until: (page) => page.getByRole('region', { name: 'Records' }).getByRole('button').first().click(),
  },
  {
    name: 'broker-groups',
    place: () => '#/broker/default/groups',
    until: (page) => text(filled.group)(page),
  },
  {
    name: 'broker-group',
    place: () => `#/broker/default/groups/${filled.group}`,
    until: (page) => page.getByRole('region', { name: 'Lag by partition' }).waitFor(),
  },
  {
    name: 'queue-log',
    place: () => `#/queue/default/log?open=${filled.dead}`,
    until: (page) => page.getByRole('list', { name: 'What happened' }).getByText('failed').first().waitFor(),
  },
  {
    name: 'queue-dead-letters',
    place: () => '#/queue/default/dead-letters',
    until: async (page) => {
      await page.getByRole('button', { name: filled.dead }).click();
      await text('Last response')(page);
    },
  },
  {
    name: 'queue-publish',
    place: () => '#/queue/default/publish',
    until: (page) => page.getByLabel('URL or URL group').fill('https://shop.example/hook'),
  },
  { name: 'queue-schedules', place: () => '#/queue/default/schedules', until: text('nightly-report') },
  { name: 'queue-groups', place: () => '#/queue/default/groups', until: text('billing') },
  { name: 'queue-queues', place: () => '#/queue/default/queues', until: text('invoices') },
  { name: 'queue-flow', place: () => '#/queue/default/flow', until: text('shop') },
  { name: 'queue-runs', place: () => '#/queue/default/runs', until: text('No run fits') },
];

async function runCommand(page: Page): Promise<void> {
  await page.getByLabel('Command').fill('HGETALL console-shop:user:1');
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByText('Lübeck').waitFor();
  await page.getByLabel('Command').fill('GET ');
  await page.getByText('Returns the string value').waitFor();
}

/** Those of the documentation: each screen once, and some in the dark. */
const DARK = ['overview', 'queue-log', 'broker-group', 'vector-map'];

const pictured = (name: string, width: number, colours: Colours) =>
  PICTURES !== undefined &&
  width === 1_280 &&
  (colours === 'light' ? name !== 'kv-hostile' : DARK.includes(name));

const SIZES: readonly (readonly [width: number, colours: Colours])[] = [
  [1_280, 'light'],
  [1_280, 'dark'],
  [360, 'light'],
  [820, 'dark'],
];

describe.each(SIZES)('at %d px, %s', (width, colours) => {
  it.each(SCREENS)(
    '$name shows what it is about: no violation, no complaint, nothing beside the edge',
    async (screen) => {
      const tab = await visit(browser, site.url + screen.place(), ALL, { width, height: 900, colours });
      await screen.until(tab.page);
      const found = await violations(tab.page);
      if (pictured(screen.name, width, colours))
        await tab.page.screenshot({
          path: `${PICTURES}/${screen.name}-${colours}.png`,
          animations: 'disabled',
        });
      const overflow = await tab.page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      await tab.context.close();
      expect({ found, overflow, complaints: tab.complaints }).toEqual({
        found: [],
        overflow: 0,
        complaints: [],
      });
    },
  );
});

it('is used by keys alone: from the sign-in to a message sent again', async () => {
  const tab = await visit(browser, site.url, []);
  const { page } = tab;
  /** Tab until what has the focus fits. */
  const tabTo = async (wanted: RegExp) => {
    for (let i = 0; i < 80; i += 1) {
      await page.keyboard.press('Tab');
      const name = await page.evaluate(
        `(() => { const e = document.activeElement; return (e.labels?.[0]?.innerText ?? '') + ' ' + (e.ariaLabel ?? '') + ' ' + e.innerText; })()`,
      );
      if (wanted.test(String(name))) return;
    }
    throw new Error(`no ${wanted} is reached by Tab`);
  };
  await page.getByLabel('Token').waitFor();
  await tabTo(/Token/);
  await tabTo(/^Token/);
  await page.keyboard.type(TOKENS.queue);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await tabTo(/Skip to the content/);
  await tabTo(/Dead letters/);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: filled.dead }).waitFor();
  await tabTo(new RegExp(`^ *${filled.dead}`));
  await page.keyboard.press('Enter');
  await page.getByText('Last response').waitFor();
  await tabTo(/^ *Retry$/);
  site.mend();
  await page.keyboard.press('Enter');
  await page.getByText('1 sent again').waitFor();
  await eventually(() =>
    expect(site.received.filter((path) => path === 'POST /broken').length).toBeGreaterThan(2),
  );
  await tab.context.close();
  expect(tab.complaints).toEqual([]);
});

it('is quiet while its tab is hidden, and goes on when it is shown', async () => {
  const tab = await visit(browser, site.url, ALL);
  await tab.page.locator('canvas').first().waitFor();
  let asked = 0;
  tab.page.on('request', () => {
    asked += 1;
  });
  const setHidden = (isHidden: boolean) =>
    tab.page.evaluate(
      `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'));`,
    );
  await setHidden(true);
  // two of its rounds
  await tab.page.waitForTimeout(11_000);
  expect(asked).toBe(0);
  await setHidden(false);
  await eventually(() => expect(asked).toBeGreaterThan(1));
  await tab.context.close();
});
