import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

// npm run docs:site: the pages as a site, in .portico/site. What it is made with is installed here and nowhere else: it is 100 MB.

const site = fileURLToPath(new URL('.', import.meta.url));
const docs = join(site, '..');
const pages = join(site, 'pages');
const run = (file, ...args) => execFileSync(file, args, { cwd: site, stdio: 'inherit' });

if (!existsSync(join(site, 'node_modules/vitepress'))) run('npm', 'ci', '--no-audit', '--no-fund');

// modules are looked for above the pages
rmSync(pages, { recursive: true, force: true });
for (const name of readdirSync(docs))
  if (name.endsWith('.md') || name === 'decisions')
    cpSync(join(docs, name), join(pages, name), { recursive: true });
run('npx', 'vitepress', 'build');
