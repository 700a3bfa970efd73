import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './profile.mjs';

// Renews what the documentation takes from the schemas: config/openapi.json, config/portico.yaml and the README's table.
const gateway = (...command) =>
  execFileSync(process.execPath, [join(root, 'dist/main.js'), ...command], { encoding: 'utf8' });

writeFileSync(join(root, 'config/openapi.json'), gateway('openapi'));
writeFileSync(join(root, 'config/portico.yaml'), gateway('settings', 'yaml'));

const readme = join(root, 'README.md');
const marked = /(<!-- settings: npm run docs -->\n)[\s\S]*?(<!-- end of settings -->)/;
const text = readFileSync(readme, 'utf8');
if (!marked.test(text)) throw new Error('README.md has lost the marks of its table of settings');
writeFileSync(
  readme,
  text.replace(marked, (_, begin, end) => `${begin}${gateway('settings')}${end}`),
);
