import { MAX_SPARSE_VALUES } from '../records/sparse-vector.js';
import type { SparseInput } from '../schemas/records.js';
import type { SparseEmbedder } from './embedder.js';

// weights of BM25 as the hosted product publishes them: saturation, influence of the length, average length in words
const K1 = 1.2;
const B = 0.75;
const AVERAGE_WORDS = 32;

/**
 * One index a word: its hash. A stored word weighs as BM25 says, one that is asked for by its count; how rare it is comes in at
 * query time (`weightingStrategy: IDF`). No stemming and no stop words: works alike in every language.
 */
export const wordEmbedder: SparseEmbedder = {
  model: 'words',
  embed: (text, purpose) => {
    const words =
      text
        .normalize('NFKC')
        .toLowerCase()
        .match(/[\p{L}\p{N}]+/gu) ?? [];
    const counts = new Map<number, number>();
    for (const word of words) counts.set(hash(word), (counts.get(hash(word)) ?? 0) + 1);
    return weighed(counts, purpose === 'ask' ? (count) => count : saturation(words.length));
  },
};

function saturation(length: number): (count: number) => number {
  const norm = K1 * (1 - B + (B * length) / AVERAGE_WORDS);
  return (count) => (count * (K1 + 1)) / (count + norm);
}

/** Of a very long text the most frequent words are kept. */
function weighed(counts: ReadonlyMap<number, number>, weigh: (count: number) => number): SparseInput {
  const kept = [...counts].sort((a, b) => b[1] - a[1]).slice(0, MAX_SPARSE_VALUES);
  return { indices: kept.map(([index]) => index), values: kept.map(([, count]) => weigh(count)) };
}

/** FNV-1a over UTF-16 units, its lower 31 bits: indices are signed. */
function hash(word: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < word.length; i++) h = Math.imul(h ^ word.charCodeAt(i), 0x01000193);
  return h & 0x7fffffff;
}
