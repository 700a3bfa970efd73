// Loaded into each process of the gateway under test: on SIGUSR2 it writes down what keeps its event loop alive.
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.env.PORTICO_TEST_SOAK ?? '.';

process.on('SIGUSR2', () => {
  // garbage is collected only where nothing else is measured
  if (existsSync(join(folder, 'collect'))) globalThis.gc?.();
  const resources = {};
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1;
  const file = join(folder, `${process.pid}.json`);
  writeFileSync(`${file}.new`, JSON.stringify({ resources, heap: process.memoryUsage().heapUsed }));
  renameSync(`${file}.new`, file);
});
