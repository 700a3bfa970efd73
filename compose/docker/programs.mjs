import { installNative } from '../native/native-backends.mjs';
import { makeFolders, profile } from '../profile.mjs';

// Fetches the backends' programs and starts none of them: for an image that is to hold them.
const p = profile('dev');
makeFolders(p);
const failed = await installNative(p, undefined, (name, line) => console.log(`${name}: ${line}`));
for (const [name, reason] of failed) console.error(`${name}: ${reason}`);
process.exitCode = failed.size === 0 ? 0 : 1;
