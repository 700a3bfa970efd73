interface Waiting<Input, Output> {
  readonly input: Input;
  readonly resolve: (output: Output) => void;
  readonly reject: (error: unknown) => void;
}

export interface BatcherOptions<Input, Output> {
  /** One result for each input, in their order. A rejection is everybody's, unless it may be told apart. */
  readonly run: (inputs: readonly Input[]) => Promise<readonly Output[]>;
  /** Most inputs of one run. */
  readonly size: number;
  /** Bytes, say, of an input, and how many of them a run takes; a single input may have more. */
  readonly weigh?: (input: Input) => number;
  readonly weight?: number;
  /** Whether a rejection may be the fault of one input, so that each is to be run alone: the others must not suffer. */
  readonly tellApart?: (error: unknown) => boolean;
  /** Most runs at once; what comes meanwhile waits and goes together. */
  readonly parallel: number;
}

/** Runs of one input each at once: where they all wait for the end of their time, nobody waits for that very often. */
const ALONE_AT_ONCE = 4;

/** Makes one call of many that come at about the same time. A lone one waits for nothing but the end of the present tick. */
export class Batcher<Input, Output> {
  private readonly waiting: Waiting<Input, Output>[] = [];
  private running = 0;
  private scheduled = false;

  constructor(private readonly options: BatcherOptions<Input, Output>) {}

  add(input: Input): Promise<Output> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ input, resolve, reject });
      this.schedule();
    });
  }

  private schedule(): void {
    if (this.scheduled || this.running >= this.options.parallel || this.waiting.length === 0) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      void this.runNext();
    });
  }

  /** How many of those that wait go together. */
  private fitting(): number {
    const { size, weigh, weight = Number.POSITIVE_INFINITY } = this.options;
    const most = Math.min(size, this.waiting.length);
    if (weigh === undefined) return most;
    let total = 0;
    for (let count = 0; count < most; count++) {
      total += weigh((this.waiting[count] as Waiting<Input, Output>).input);
      if (total > weight && count > 0) return count;
    }
    return most;
  }

  private async runNext(): Promise<void> {
    const batch = this.waiting.splice(0, this.fitting());
    this.running += 1;
    this.schedule();
    try {
      const outputs = await this.options.run(batch.map(({ input }) => input));
      batch.forEach(({ resolve }, i) => {
        resolve(outputs[i] as Output);
      });
    } catch (error) {
      if (batch.length > 1 && this.options.tellApart?.(error) === true) await this.runAlone(batch);
      else for (const { reject } of batch) reject(error);
    } finally {
      this.running -= 1;
      this.schedule();
    }
  }

  private async runAlone(batch: readonly Waiting<Input, Output>[]): Promise<void> {
    const runOne = ({ input, resolve, reject }: Waiting<Input, Output>) =>
      this.options.run([input]).then(([output]) => resolve(output as Output), reject);
    for (let i = 0; i < batch.length; i += ALONE_AT_ONCE)
      await Promise.all(batch.slice(i, i + ALONE_AT_ONCE).map(runOne));
  }
}
