import type { Instance } from '../../data/session.js';

export interface Position {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** @param point `earliest`, `latest`, or ms since 1970 */
export async function offsetsAt(
  instance: Instance,
  topic: string,
  partitions: number,
  point: 'earliest' | 'latest' | number,
  signal?: AbortSignal,
): Promise<number[]> {
  const body = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }));
  const call = { method: 'POST', body, ...(signal === undefined ? {} : { signal }) };
  const found = await instance.get<Position[]>(`/offsets/${point}`, call);
  return found.map(({ offset }) => offset);
}
