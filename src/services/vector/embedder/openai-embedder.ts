import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import { AddressGuard } from '../../../lib/outbound/address-guard.js';
import { Outbound } from '../../../lib/outbound/outbound.js';
import { OutboundError } from '../../../lib/outbound/outbound-error.js';
import type { IndexSettings } from '../settings.js';
import type { DenseEmbedder } from './embedder.js';

type EmbeddingSettings = IndexSettings['embedding'] & { readonly url: string };

/** Bytes of a component in a reply, at most (`-0.012345678901234567,` and white space), and of what stands around them. */
const COMPONENT_BYTES = 40;
const REPLY_BYTES = 1024 * 1024;

const reply = z.object({ data: z.array(z.object({ index: z.int(), embedding: z.array(z.unknown()) })) });

/** Asks an OpenAI-compatible embeddings endpoint (`POST {model, input}`; OpenAI's API reference, "Create embeddings"). */
export function openaiEmbedder(
  settings: EmbeddingSettings,
  dimension: number,
  lifecycle: ReleaseRegistry,
): DenseEmbedder {
  const url = new URL(settings.url);
  // its own host may be private: the operator named it, no request can
  const outbound = new Outbound(new AddressGuard([url.hostname.replace(/^\[(.*)\]$/, '$1')]));
  lifecycle.onStop('embedder', () => outbound.close());

  const embedBatch = async (texts: readonly string[], signal: AbortSignal) => {
    const { status, body } = await outbound
      .send({
        url,
        method: 'POST',
        headers: [
          ...['content-type', 'application/json', 'accept', 'application/json'],
          ...(settings.apiKey === null ? [] : ['authorization', `Bearer ${settings.apiKey}`]),
        ],
        body: Buffer.from(JSON.stringify({ model: settings.model, input: texts, encoding_format: 'float' })),
        timeoutMs: settings.timeoutMs,
        maxBodyBytes: REPLY_BYTES + texts.length * dimension * COMPONENT_BYTES,
        signal,
      })
      .catch((cause: unknown) => {
        throw failure(cause);
      });
    if (status !== 200) throw refusal(status);
    return vectorsOf(body, texts.length, dimension);
  };

  return {
    model: settings.model,
    embed: async (texts, signal) => {
      const vectors: (readonly unknown[])[] = [];
      // one batch after the other: endpoints limit how much one client may ask at once
      for (let start = 0; start < texts.length; start += settings.batchSize)
        vectors.push(...(await embedBatch(texts.slice(start, start + settings.batchSize), signal)));
      return vectors;
    },
  };
}

/** @throws HttpError 502 when there is not one vector of this dimension a text */
function vectorsOf(body: Buffer, count: number, dimension: number): unknown[][] {
  let parsed: z.output<typeof reply>;
  try {
    parsed = reply.parse(JSON.parse(body.toString('utf8')));
  } catch (cause) {
    throw new HttpError('backend_error', 'The embedder sent what is no list of embeddings.', { cause });
  }
  const vectors = [...parsed.data].sort((a, b) => a.index - b.index).map(({ embedding }) => embedding);
  if (vectors.length !== count)
    throw new HttpError(
      'backend_error',
      `The embedder sent ${vectors.length} embeddings for ${count} texts.`,
    );
  // the order of the entries says nothing: without its number a vector could end up with another text
  const places = new Set(parsed.data.map(({ index }) => index));
  if (places.size !== count || [...places].some((index) => index < 0 || index >= count))
    throw new HttpError(
      'backend_error',
      `The embedder did not number its embeddings from 0 to ${count - 1}.`,
    );
  const other = vectors.find((vector) => vector.length !== dimension);
  if (other !== undefined) {
    throw new HttpError(
      'backend_error',
      `The embedder's vectors have ${other.length} dimensions, those of the index ${dimension}.`,
    );
  }
  return vectors;
}

function refusal(status: number): HttpError {
  if (status === 429 || status >= 500)
    return new HttpError('backend_unavailable', `The embedder cannot answer now (${status}).`);
  return new HttpError('backend_error', `The embedder refused the texts (${status}).`);
}

function failure(cause: unknown): HttpError {
  if (cause instanceof OutboundError && cause.reason === 'timeout')
    return new HttpError('timeout', 'The embedder did not answer in time.', { cause });
  return new HttpError('backend_unavailable', 'The embedder is not available.', { cause });
}
