import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ensurePackages } from '../../compose/install/ensure.mjs';
import { root } from '../../compose/state/profile.mjs';

// npm run test:unit [-- FILE ...]: the tests that need neither backends nor a compiled gateway.

/** What wants a backend or the compiled gateway. */
const others = ['<rootDir>/test/(integration|acceptance|full)/', '<rootDir>/test/contract/services'];

await ensurePackages((line) => console.error(line));
const jest = join(root, 'node_modules/jest/bin/jest.js');
const args = [...process.argv.slice(2), '--testPathIgnorePatterns', ...others];
const child = spawn(process.execPath, [jest, ...args], { cwd: root, stdio: 'inherit' });
child.once('exit', (code) => process.exit(code ?? 1));
