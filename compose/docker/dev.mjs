import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root, stateDir } from '../profile.mjs';
import { parseEnvFile } from '../secrets.mjs';

// The program of the image portico:dev: `portico start`, with the backends' programs of the image and data in one volume.

/** Where the image has the programs; they know themselves by the link. */
const programs = '/opt/portico/programs';

if (!existsSync(join(stateDir, 'programs'))) symlinkSync(programs, join(stateDir, 'programs'));
if (/^(on|yes|true|1)$/.test(process.env.PORTICO_TEST_TOKENS ?? '')) {
  const known = parseEnvFile(readFileSync(join(root, 'compose/docker/test-tokens.env'), 'utf8'));
  for (const [name, token] of Object.entries(known)) process.env[name] ||= token;
}
delete process.env.PORTICO_TEST_TOKENS;
process.argv.push('start');
await import('../portico.mjs');
