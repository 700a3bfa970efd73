import { join } from 'node:path';
import { makeFolders, profile } from './state/profile.mjs';
import { secretsOf } from './state/secrets.mjs';

// For those who run compose.yaml by hand: makes the secrets and says where they are.
const p = profile('dev');
makeFolders(p);
secretsOf(p);
console.log(join(p.dir, 'secrets.env'));
