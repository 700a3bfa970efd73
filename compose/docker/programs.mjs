import { installNative } from '../native/native-backends.mjs';
import { programInstaller } from '../native/programs/programs.mjs';
import { makeFolders, profile } from '../state/profile.mjs';

// Fetches the backends' programs and starts none of them: for an image that is to hold them.
const p = profile('dev');
makeFolders(p);
const say = (name, line) => console.log(`${name}: ${line}`);
// for `docker run --user`
await programInstaller(p, (line) => say('programs', line)).program('nss-wrapper');
const failed = await installNative(p, undefined, say);
for (const [name, reason] of failed) console.error(`${name}: ${reason}`);
process.exitCode = failed.size === 0 ? 0 : 1;
