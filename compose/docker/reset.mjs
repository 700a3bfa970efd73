import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root, stateDir } from '../state/profile.mjs';

// Wipes what a test has left in the image portico:dev: `docker exec CONTAINER reset`. The gateway goes on; declared topics
// and indexes stay, empty. Offsets of topics go on counting. Signing keys and the schema's version are not touched.

const note = join(stateDir, 'run/gateway.json');
const { status } = spawnSync(
  process.execPath,
  ['--disable-warning=TimeoutNegativeWarning', join(root, 'dist/main.js'), 'reset', note],
  { stdio: ['ignore', 'inherit', 'inherit'] },
);
process.exitCode = status ?? 1;
