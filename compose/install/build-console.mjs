import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, 'dist/console');

/** Below that packing saves nothing. */
const SMALLEST = 512;

/** Each file as brotli and gzip beside it, once and well, so that the gateway packs nothing while it serves. */
function pack() {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.(js|css|html|svg)$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const plain = readFileSync(path);
    if (plain.length < SMALLEST) continue;
    const size = { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
    writeFileSync(`${path}.br`, brotliCompressSync(plain, { params: size }));
    writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
  }
}

/** The console's page into dist/console. @param {boolean} [isQuick] for development: not minified */
export async function buildConsole(isQuick = false) {
  await build({
    configFile: false,
    root: join(root, 'src/console/page'),
    // below any prefix
    base: './',
    logLevel: 'warn',
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2023',
      minify: !isQuick,
      // a strict content security policy loads no data: URLs
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rolldownOptions: { checks: { pluginTimings: false } },
    },
    worker: { format: 'es' },
  });
  pack();
}
