// Loaded into the gateway under test beside its own code: what is garbage shall not be taken for a leak.
process.on('SIGUSR2', () => globalThis.gc());
