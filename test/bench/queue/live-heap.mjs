// Loaded into a gateway under load (`--expose-gc --import`): tells on SIGUSR2 how many bytes are in use.
process.on('SIGUSR2', () => {
  globalThis.gc();
  // what waited for the end of a turn, and weak references
  setTimeout(() => {
    globalThis.gc();
    const { heapUsed, external } = process.memoryUsage();
    console.log(`live heap ${heapUsed + external}`);
  }, 100);
});
