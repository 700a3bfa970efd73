import type { Instance } from '../../data/session.js';

export type Word = string | number;

/** The result of one command. @throws ApiError */
export async function run<Result>(
  instance: Instance,
  words: readonly Word[],
  signal?: AbortSignal,
): Promise<Result> {
  const call = { method: 'POST', body: words, ...(signal === undefined ? {} : { signal }) };
  return (await instance.get<{ result: Result }>('', call)).result;
}

export interface Part {
  readonly result?: unknown;
  readonly error?: string;
}

/** Several commands in one request; each has a result or an error of its own. */
export async function runAll(
  instance: Instance,
  commands: readonly (readonly Word[])[],
  signal?: AbortSignal,
): Promise<readonly Part[]> {
  if (commands.length === 0) return [];
  const call = { method: 'POST', body: commands, ...(signal === undefined ? {} : { signal }) };
  return instance.get<Part[]>('/pipeline', call);
}
