import { useState } from 'preact/hooks';

export interface Outcome {
  readonly tone: 'good' | 'bad';
  readonly text: string;
}

/** Runs an action and keeps what came of it, for a notice. */
export function useAction(): readonly [Outcome | undefined, (work: () => Promise<string>) => Promise<void>] {
  const [outcome, setOutcome] = useState<Outcome>();
  const run = async (work: () => Promise<string>) => {
    setOutcome(undefined);
    try {
      setOutcome({ tone: 'good', text: await work() });
    } catch (error) {
      setOutcome({ tone: 'bad', text: (error as Error).message });
    }
  };
  return [outcome, run];
}
