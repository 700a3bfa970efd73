import { ensurePackages } from '../../compose/install/ensure.mjs';

// npm run test:docker: in a fresh checkout there are no packages yet, and the suite imports some.
await ensurePackages((line) => console.log(line));
const { main } = await import('./suite.mjs');
await main();
