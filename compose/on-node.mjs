import { pathToFileURL } from 'node:url';
import { demandNode, goOnWith, isFit } from './install/node.mjs';

// Runs a script for developers, `node compose/on-node.mjs FILE ARGUMENT ...`, on a Node that the gateway is made for.

demandNode();

async function main(argv) {
  const [file, ...args] = argv;
  if (!isFit(process.versions.node)) {
    const { fetchedNode, fetchNode } = await import('./install/fetch-node.mjs');
    const { demandFetch } = await import('./launcher/preflight.mjs');
    if (fetchedNode() === undefined) await demandFetch();
    await goOnWith(fetchedNode() ?? (await fetchNode()), [file, ...args]);
  }
  process.argv = [process.argv[0], file, ...args];
  await import(pathToFileURL(file).href);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
