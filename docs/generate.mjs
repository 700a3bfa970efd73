import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../compose/state/profile.mjs';

// Renews what the documentation takes from the schemas: config/openapi.json, config/portico.yaml, the table in docs/configuration.md; and what the start scripts know of services.
const gateway = (...command) =>
  execFileSync(process.execPath, [join(root, 'dist/main.js'), ...command], { encoding: 'utf8' });

writeFileSync(join(root, 'config/openapi.json'), gateway('openapi'));
writeFileSync(join(root, 'config/portico.yaml'), gateway('settings', 'yaml'));
writeFileSync(join(root, 'compose/state/services.json'), gateway('services'));

const page = join(root, 'docs/configuration.md');
const marked = /(<!-- settings: npm run docs -->\n)[\s\S]*?(<!-- end of settings -->)/;
const text = readFileSync(page, 'utf8');
if (!marked.test(text)) throw new Error('docs/configuration.md has lost the marks of its table of settings');
writeFileSync(
  page,
  text.replace(marked, (_, begin, end) => `${begin}${gateway('settings')}${end}`),
);
