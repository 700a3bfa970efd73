import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../compose/state/profile.mjs';
import { thirdPartyPage } from './third-party.mjs';

// Renews what the documentation takes from the schemas: config/openapi.json, config/portico.yaml, the table in docs/configuration.md; what the lock
// file says of licences: docs/third-party.md; and what the start scripts know of services: compose/state/services.json, and the variables in compose.yaml and test-tokens.env.
const gateway = (...command) =>
  execFileSync(process.execPath, [join(root, 'dist/main.js'), ...command], { encoding: 'utf8' });

writeFileSync(join(root, 'config/openapi.json'), gateway('openapi'));
writeFileSync(join(root, 'config/portico.yaml'), gateway('settings', 'yaml'));
writeFileSync(join(root, 'compose/state/services.json'), gateway('services'));
writeFileSync(join(root, 'docs/third-party.md'), thirdPartyPage());

/** Puts `content` between the two marks of a file. */
function renew(file, marked, content) {
  const path = join(root, file);
  const text = readFileSync(path, 'utf8');
  if (!marked.test(text)) throw new Error(`${file} has lost its marks ${marked}`);
  writeFileSync(
    path,
    text.replace(marked, (_, begin, end) => `${begin}${content}${end}`),
  );
}

renew(
  'docs/configuration.md',
  /(<!-- settings: npm run docs -->\n)[\s\S]*?(<!-- end of settings -->)/,
  gateway('settings'),
);

/** @type {import('../compose/state/services.mjs').Card[]} */
const cards = Object.values(JSON.parse(gateway('services')));
const credentials = cards.flatMap((card) => card.credentials);
writeFileSync(
  join(root, 'compose/docker/test-tokens.env'),
  [
    '# Everybody knows these tokens: for tests, on addresses that nobody else reaches. PORTICO_TEST_TOKENS=on takes them.\n',
    ...credentials.map(({ variable, inTests }) => `${variable}=${inTests}\n`),
  ].join(''),
);
const variables = cards.flatMap((card) => [
  ...card.credentials.map(
    ({ variable, made }) => `${variable}: \${${variable}:${made.by === 'start' ? '?' : '-'}}`,
  ),
  ...Object.entries(card.variables).map(([name, value]) => `${name}: \${${name}:-${value}}`),
]);
renew(
  'compose/compose.yaml',
  /( +# of the services: npm run docs\.[^$]*?on top prints them\.\n)[\s\S]*?( +# end of the services\n)/,
  variables.map((line) => `      ${line}\n`).join(''),
);
