import { Pieces } from '../../../http/route.js';
import { Pace } from '../../../lib/slices.js';
import { unavailable } from '../errors.js';

/** Characters that are written at once. */
const PIECE = 64 * 1024;

/**
 * A list of any length as a JSON array, which is what the SDKs expect. It is read as fast as its reader takes it, so no
 * more than a piece of it is held, however many elements there are.
 * @param view what is shown of an element
 */
export function arrayReply<T>(elements: AsyncIterable<T>, view: (element: T) => unknown): Pieces {
  return arrayOfTexts(elements, (element) => [JSON.stringify(view(element))]);
}

/** The same of elements that are long themselves. @param texts the parts of an element's JSON */
export function arrayOfTexts<T>(elements: AsyncIterable<T>, texts: (element: T) => Iterable<string>): Pieces {
  return new Pieces('application/json; charset=utf-8', pieces(elements, texts));
}

async function* pieces<T>(
  elements: AsyncIterable<T>,
  texts: (element: T) => Iterable<string>,
): AsyncGenerator<string> {
  const pace = new Pace();
  let text = '[';
  let separator = '';
  try {
    for await (const element of elements) {
      text += separator;
      separator = ',';
      for (const part of texts(element)) {
        text += part;
        if (text.length < PIECE) continue;
        yield text;
        text = '';
      }
      await pace.rest();
    }
  } catch (error) {
    throw unavailable(error);
  }
  yield `${text}]`;
}
