import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildConsole } from './build-console.mjs';
import { bringReferencePage } from './reference-page.mjs';

// npm run build: the gateway in one file, dist/main.js, its packages beside it. Node finds one file in two thirds of the CPU
// time that it takes to find and link 350: a start with `check` and `tokens` before it costs 1.2 s less. And the console, dist/console.

const root = fileURLToPath(new URL('../..', import.meta.url));

/** @type {import('esbuild').BuildOptions} */
export const gatewayBuild = {
  absWorkingDir: root,
  entryPoints: ['src/main.ts'],
  outfile: 'dist/main.js',
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node22',
  sourcemap: true,
  logLevel: 'warning',
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await Promise.all([build(gatewayBuild), buildConsole()]);
  try {
    bringReferencePage(join(root, 'dist/docs'));
  } catch (error) {
    // a package and an image without it would be released for good; whoever works offline can do without
    if (process.env.PORTICO_BUILD === 'release') throw error;
    console.error(`/docs is left out: ${error.message}`);
  }
}
