import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { ERRORS } from '../../src/http/errors.js';
import { anchorsOf, PAGES, RUNNABLE, snippetsOf, textOf } from '../support/docs.js';

/** The pages whose blocks test/acceptance/docs-pages.test.ts runs. */
const RUN = ['kv', 'vector', 'broker', 'queue', 'deploy', 'migrate', 'test-in-ci', 'troubleshoot'];

it.each(PAGES)('%s links to what is there, anchors included', (page) => {
  const text = textOf(page).replace(/^```[\s\S]*?^```$/gm, '');
  const broken = [...text.matchAll(/\]\(([^)\s]+)\)/g)].filter(([, target = '']) => {
    if (/^(https?:|mailto:)/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : normalize(join(dirname(page), path));
    if (!existsSync(file)) return true;
    return anchor !== undefined && !statSync(file).isDirectory() && !anchorsOf(file).includes(anchor);
  });
  expect(broken.map(([link]) => link)).toEqual([]);
});

it.each(PAGES)('%s has no block that nobody runs without a reason', (page) => {
  const isRun = RUN.some((name) => page === `docs/${name}.md`) || page === 'README.md';
  const loose = snippetsOf(page).filter(
    ({ language, notRun }) => RUNNABLE.includes(language) && notRun === undefined && !isRun,
  );
  expect(loose.map(({ place }) => place)).toEqual([]);
  for (const { notRun } of snippetsOf(page)) expect(notRun ?? 'a reason').toMatch(/\w{3}/);
});

it.each(PAGES)('%s has blocks of YAML that can be read', (page) => {
  for (const { place, language, text } of snippetsOf(page))
    if (language === 'yaml')
      for (const { errors } of parseAllDocuments(text)) expect([place, errors]).toEqual([place, []]);
});

it('explains every error that the gateway mints, by its words', () => {
  const page = textOf('docs/troubleshoot.md');
  const missing = Object.values(ERRORS).filter(
    ([status, words]) => !page.includes(`| ${status} \`${words}\``),
  );
  expect(missing).toEqual([]);
});

it('has a README of one screen and a half', () => {
  expect(textOf('README.md').length).toBeLessThanOrEqual(10_000);
});
