import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const SITE = '.portico/site';

jest.setTimeout(600_000);

beforeAll(async () => {
  await promisify(execFile)('npm', ['run', '--silent', 'docs:site']);
});

const pages = () =>
  (readdirSync(SITE, { recursive: true }) as string[]).filter((name) => name.endsWith('.html'));

it('has every page, and a search that knows them', () => {
  expect(pages()).toEqual(
    expect.arrayContaining(['index.html', 'kv.html', 'deploy.html', 'migrate.html', 'decisions/index.html']),
  );
  const chunks = readdirSync(join(SITE, 'assets/chunks'));
  const index = chunks.find((name) => name.startsWith('@localSearchIndexroot')) as string;
  expect(readFileSync(join(SITE, 'assets/chunks', index), 'utf8')).toMatch(/\bcloudflare\b/i);
});

it('has links that hold, anchors included, and shows nothing that is meant for tests', () => {
  for (const page of pages().filter((name) => name !== '404.html')) {
    const html = readFileSync(join(SITE, page), 'utf8');
    expect(html).not.toMatch(/<p>&lt;!--/);
    const own = html.replace(/<nav[\s\S]*?<\/nav>/g, '');
    const broken = [...own.matchAll(/<a[^>]*href="([^"]+)"/g)].filter(([, href = '']) => {
      // files of the repository are no pages
      if (
        /^(https?:|mailto:)/.test(href) ||
        /(^|\/)(README|config|compose|test|src|examples|LICENSE)/.test(href)
      )
        return false;
      const [path = '', anchor] = href.split('#');
      const file = path === '' ? page : path.startsWith('/') ? path.slice(1) : join(dirname(page), path);
      const found = [file, `${file}.html`, join(file, 'index.html')].find(
        (name) => name.endsWith('.html') && existsSync(join(SITE, name)),
      );
      if (found === undefined) return path !== '/';
      return (
        anchor !== undefined &&
        anchor !== '' &&
        !readFileSync(join(SITE, found), 'utf8').includes(`id="${decodeURI(anchor)}"`)
      );
    });
    expect([page, broken.map(([, href]) => href)]).toEqual([page, []]);
  }
});
