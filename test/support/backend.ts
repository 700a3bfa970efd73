import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export type BackendName = 'redis' | 'postgres' | 'kafka' | 'rabbitmq';

export interface BackendControl {
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again on the same data; resolves when it answers. */
  start(): Promise<void>;
  /** SIGSTOP: it keeps its connections and answers nothing. */
  pause(): Promise<void>;
  resume(): Promise<void>;
}

/** Faults for one backend of this test run. A test that kills or pauses one brings it back in `afterAll`. */
export function backend(name: BackendName): BackendControl {
  const profile = process.env.PORTICO_TEST_PROFILE ?? 'test';
  const control = async (verb: string) => {
    const args = ['compose/backends.mjs', verb, '--profile', profile, name];
    await run(process.execPath, args, { timeout: 180_000 }).catch((error) => {
      throw new Error(`${error.message}\n${error.stdout}${error.stderr}`);
    });
  };
  return {
    kill: () => control('kill'),
    start: () => control('start'),
    pause: () => control('pause'),
    resume: () => control('resume'),
  };
}
