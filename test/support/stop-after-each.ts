interface Stoppable {
  stop(): Promise<unknown>;
}

/**
 * For what tests start themselves: what the returned function is given is stopped after the test, the last first.
 * @param timeoutMs for stopping all of it
 */
export function stopAfterEach(timeoutMs = 30_000): <T extends Stoppable>(started: T) => T {
  const running: Stoppable[] = [];
  afterEach(async () => {
    for (const one of running.splice(0).reverse()) await one.stop();
  }, timeoutMs);
  return (started) => {
    running.push(started);
    return started;
  };
}
