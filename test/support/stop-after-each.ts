interface Stoppable {
  stop(): Promise<unknown>;
}

/** For what tests start themselves: what the returned function is given is stopped after the test, the last first. */
export function stopAfterEach(): <T extends Stoppable>(started: T) => T {
  const running: Stoppable[] = [];
  afterEach(async () => {
    for (const one of running.splice(0).reverse()) await one.stop();
  });
  return (started) => {
    running.push(started);
    return started;
  };
}
