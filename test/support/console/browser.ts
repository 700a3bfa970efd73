import { readFileSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run the tests with npm test`);
  return value;
}

/** The Chromium that the tests bring, which talks to nobody but the page's own gateway. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: variable('PORTICO_TEST_CHROMIUM'),
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
    env: {
      PATH: process.env.PATH ?? '',
      LD_LIBRARY_PATH: variable('PORTICO_TEST_CHROMIUM_LIBRARIES'),
      FONTCONFIG_FILE: variable('PORTICO_TEST_CHROMIUM_FONTS'),
    },
  });
}

export type Colours = 'light' | 'dark';

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page said of errors: of its own, of its policy, of requests that it could not make. */
  readonly complaints: readonly string[];
}

/** Opens a tab with the given credentials kept, as after a sign-in. */
export async function visit(
  browser: Browser,
  url: string,
  credentials: readonly string[],
  { width = 1_280, height = 800, colours = 'light' as Colours } = {},
): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: colours });
  if (credentials.length > 0)
    await context.addInitScript((kept) => {
      if (sessionStorage.getItem('portico.console.credentials') === null)
        sessionStorage.setItem('portico.console.credentials', kept);
    }, JSON.stringify(credentials));
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // a refusal that a test asks for is no complaint, nor are the machine's networks, which other programs change
    const isOurs = !/status of 4\d\d|ERR_NETWORK_CHANGED/.test(message.text());
    if (message.type() === 'error' && isOurs) complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(url).origin)) complaints.push(`asks ${request.url()}`);
  });
  await page.goto(url);
  return { page, context, complaints };
}

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds wrong with the page as it is now: rule, and where. */
export async function violations(page: Page): Promise<string[]> {
  // by the debugger, not as a script of the page, which its policy would refuse
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>;
      };
    };
    const result = await axe.run();
    return result.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary.slice(0, 300)}`),
    );
  });
}
