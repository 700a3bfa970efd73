import { HttpError } from '../../../http/errors.js';
import type { SparseInput } from '../schemas/records.js';

/** Makes dense vectors of texts. Another kind of embedder is another implementation of this. */
export interface DenseEmbedder {
  /** As shown in `info`. */
  readonly model: string;
  /**
   * One vector a text, in their order.
   * @throws HttpError 502, 503 or 504 when there are none
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly (readonly unknown[])[]>;
}

/** Makes sparse vectors of texts. A question is weighed otherwise than what is stored. */
export interface SparseEmbedder {
  readonly model: string;
  embed(text: string, purpose: 'store' | 'ask'): SparseInput;
}

/** What an index has; a part without an embedder is `undefined`. */
export interface Embedders {
  readonly dense: DenseEmbedder | undefined;
  readonly sparse: SparseEmbedder | undefined;
}

/** Vectors of one text, as a record or a query carries them. */
export interface EmbeddedText {
  readonly vector?: readonly unknown[];
  readonly sparseVector?: SparseInput;
}

/** Which parts are asked for. */
export interface Parts {
  readonly dense: boolean;
  readonly sparse: boolean;
}

/** @throws HttpError 422 where the index has no embedder for a part, and what the embedder throws */
export async function embedTexts(
  { dense, sparse }: Embedders,
  texts: readonly string[],
  parts: Parts,
  purpose: 'store' | 'ask',
  signal: AbortSignal,
): Promise<EmbeddedText[]> {
  if ((parts.dense && dense === undefined) || (parts.sparse && sparse === undefined)) throw noEmbedder();
  const vectors = parts.dense && dense !== undefined ? await dense.embed(texts, signal) : undefined;
  return texts.map((text, i) => ({
    ...(vectors === undefined ? {} : { vector: vectors[i] as readonly unknown[] }),
    ...(parts.sparse && sparse !== undefined ? { sparseVector: sparse.embed(text, purpose) } : {}),
  }));
}

function noEmbedder(): HttpError {
  // clients of this contract look for these words
  return new HttpError(
    'unprocessable',
    'Embedding data for this index is not allowed. The index must be created with an embedding model to use it.',
  );
}
