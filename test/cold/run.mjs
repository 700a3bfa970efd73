import { scenarios } from './scenarios.mjs';

// npm run test:cold [-- NAME ...]: starts Portico in systems that hold nothing but Node. Needs root, for the systems only:
// Portico itself runs there as an unprivileged user.

if (process.getuid?.() !== 0) {
  console.error('npm run test:cold makes bare systems (chroot, namespaces) and needs root for that.');
  process.exit(2);
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(scenarios, name));
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}. There are: ${Object.keys(scenarios).join(', ')}`);
  process.exit(2);
}

let passed = 0;
let failed = 0;
const begun = Date.now();
for (const [name, scenario] of Object.entries(scenarios)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const say = (line) =>
    console.log(`${((Date.now() - begun) / 1000).toFixed(0).padStart(5)} s  ${name}: ${line}`);
  try {
    await scenario(say);
    passed += 1;
    say('passed');
  } catch (error) {
    failed += 1;
    say(`FAILED: ${error.message}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
