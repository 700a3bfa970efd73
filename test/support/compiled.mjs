import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { gatewayBuild } from '../../compose/install/build.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * What modules of the gateway export, for programs that Node runs as they are.
 * @param {string} name of the compiled file
 * @param {string[]} modules such as `services/index.js`, below src
 * @returns {Promise<any>}
 */
export async function compiled(name, modules) {
  // below the project: packages are looked for from there
  const outfile = `${root}.portico/run/compiled/${name}.mjs`;
  const contents = modules.map((module) => `export * from './src/${module}';`).join('\n');
  const stdin = { contents, resolveDir: root, loader: /** @type {const} */ ('ts') };
  await build({ ...gatewayBuild, entryPoints: undefined, stdin, outfile });
  return import(pathToFileURL(outfile).href);
}
