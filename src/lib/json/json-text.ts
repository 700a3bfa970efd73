import { sliced } from '../slices.js';

/** Characters of a string that are escaped at once: about 1 ms where each becomes six. */
const PART = 64 * 1024;
/** Elements between two rests. */
const ELEMENTS = 1_000;

/**
 * A value that came out of JSON as its text, in pieces: one string of control characters, six times as long as text, alone
 * holds the loop for a second.
 * @param most characters of the text
 * @returns the parts of the text; `undefined` when it is longer, and then little more than that was made
 */
function* textInPieces(value: unknown, most: number): Generator<void, readonly string[] | undefined> {
  const writer = new Writer(most);
  yield* writer.write(value);
  return writer.parts();
}

class Writer {
  private readonly done: string[] = [];
  private text = '';
  private left: number;
  private elements = 0;

  constructor(most: number) {
    this.left = most;
  }

  parts(): readonly string[] | undefined {
    return this.left < 0 ? undefined : [...this.done, this.text];
  }

  *write(value: unknown): Generator<void> {
    if (this.left < 0) return;
    if (typeof value === 'string' && value.length > PART) yield* this.longString(value);
    else if (Array.isArray(value)) yield* this.array(value);
    else if (typeof value === 'object' && value !== null) yield* this.object(value);
    else this.add(JSON.stringify(value) ?? 'null');
    this.elements += 1;
    if (this.elements % ELEMENTS === 0) yield;
  }

  private add(text: string): void {
    this.text += text;
    this.left -= text.length;
    if (this.text.length < PART) return;
    this.done.push(this.text);
    this.text = '';
  }

  private *longString(value: string): Generator<void> {
    for (const text of stringTexts(value)) {
      if (this.left < 0) return;
      this.add(text);
      yield;
    }
  }

  private *array(values: readonly unknown[]): Generator<void> {
    let before = '[';
    for (const value of values) {
      if (this.left < 0) return;
      this.add(before);
      yield* this.write(value);
      before = ',';
    }
    this.add(before === '[' ? '[]' : ']');
  }

  private *object(fields: object): Generator<void> {
    let before = '{';
    for (const [name, value] of Object.entries(fields)) {
      if (this.left < 0) return;
      if (value === undefined) continue;
      this.add(before);
      yield* this.write(name);
      this.add(':');
      yield* this.write(value);
      before = ',';
    }
    this.add(before === '{' ? '{}' : '}');
  }
}

/** A string's JSON in parts, none of which ends within a surrogate pair. */
export function* stringTexts(value: string): Generator<string> {
  if (value.length <= PART) {
    yield JSON.stringify(value);
    return;
  }
  yield '"';
  for (let from = 0; from < value.length; ) {
    const to = cut(value, from + PART);
    yield JSON.stringify(value.slice(from, to)).slice(1, -1);
    from = to;
  }
  yield '"';
}

/** The place itself, or the one before it where that is within a surrogate pair. */
function cut(text: string, wanted: number): number {
  if (wanted >= text.length) return text.length;
  const unit = text.charCodeAt(wanted);
  return unit >= 0xdc00 && unit <= 0xdfff ? wanted - 1 : wanted;
}

/** `textInPieces` of any length, as what is stored or sent. */
export async function jsonText(value: unknown): Promise<string> {
  return ((await sliced(textInPieces(value, Number.POSITIVE_INFINITY))) as readonly string[]).join('');
}

/** @param most characters of its text @returns `undefined` when it has more */
export async function jsonTextWithin(value: unknown, most: number): Promise<string | undefined> {
  return (await sliced(textInPieces(value, most)))?.join('');
}

/**
 * An array's JSON, so many elements at a time: between them others have their turn.
 * @param view what stands for an element; default: itself
 */
export async function arrayText<T>(
  elements: readonly T[],
  atOnce: number,
  view: (element: T) => unknown = (element) => element,
): Promise<string> {
  return sliced(arrayInPieces(elements, atOnce, view));
}

function* arrayInPieces<T>(
  elements: readonly T[],
  atOnce: number,
  view: (element: T) => unknown,
): Generator<void, string> {
  const pieces: string[] = [];
  for (let at = 0; at < elements.length; at += atOnce) {
    pieces.push(JSON.stringify(elements.slice(at, at + atOnce).map(view)).slice(1, -1));
    yield;
  }
  return `[${pieces.join(',')}]`;
}
