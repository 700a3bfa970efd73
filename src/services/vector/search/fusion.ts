/** A record as one of two lists ranks it, best first. */
export interface Ranked {
  /** Identifies the record in both lists. */
  readonly row: string;
  readonly score: number;
}

export type FusionAlgorithm = 'RRF' | 'DBSF';

const f = Math.fround;

/** How much ranks beyond the first ones still count, in RRF. */
const RRF_K = 60;

/**
 * Joins the lists of a hybrid query, best first, all sums in float32 as in the hosted product. On equal sums the dense
 * list goes first. A record in one list only keeps that part.
 */
export function fuse(
  dense: readonly Ranked[],
  sparse: readonly Ranked[],
  algorithm: FusionAlgorithm,
): Ranked[] {
  const parts = algorithm === 'RRF' ? reciprocalRanks : distributionScores;
  const sums = new Map<string, number>();
  for (const list of [dense, sparse]) {
    const scores = parts(list);
    list.forEach(({ row }, i) => {
      sums.set(row, f((sums.get(row) ?? 0) + (scores[i] as number)));
    });
  }
  // the order of a Map is that of insertion, and sort is stable
  return [...sums].map(([row, score]) => ({ row, score })).sort((a, b) => b.score - a.score);
}

/** `1 / (60 + rank)`, rank from 0. */
function reciprocalRanks(list: readonly Ranked[]): number[] {
  return list.map((_, rank) => f(1 / (RRF_K + rank)));
}

/** Place of each score between three standard deviations below and above the mean; 0.5 where all are equal. */
function distributionScores(list: readonly Ranked[]): number[] {
  const scores = list.map(({ score }) => f(score));
  const mean = f(scores.reduce((sum, score) => f(sum + score), 0) / scores.length);
  const squares = scores.reduce((sum, score) => f(sum + f(f(score - mean) ** 2)), 0);
  const deviation = scores.length < 2 ? 0 : f(Math.sqrt(f(squares / (scores.length - 1))));
  if (deviation === 0) return scores.map(() => 0.5);
  const low = f(mean - f(3 * deviation));
  const high = f(mean + f(3 * deviation));
  return scores.map((score) => f(f(score - low) / f(high - low)));
}

/** A float32 number in its shortest decimal form, as Postgres prints it. */
export function float32Text(value: number): string {
  const rounded = f(value);
  for (let digits = 1; digits < 9; digits++) {
    const text = rounded.toPrecision(digits);
    if (f(Number(text)) === rounded) return String(Number(text));
  }
  return String(Number(rounded.toPrecision(9)));
}
