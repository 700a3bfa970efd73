import { ServerResponse } from 'node:http';

/** A response whose head begins with header lines that are already text. */
export interface HeadBlockResponse {
  /** Complete lines, each with its CR LF; nothing in them is checked. */
  headBlock?: string;
}

type StoreHeader = (firstLine: string, headers: unknown) => void;

/** Node's function that makes the head; the same name and place since Node 0.x. */
const storeHeader = (ServerResponse.prototype as unknown as { _storeHeader: StoreHeader })._storeHeader;

/**
 * Lets responses with `prototype` start their head with `headBlock`. Node checks and inspects every header of every
 * reply by regular expressions; for the twelve of helmet that never change, this was a fifth of a small request's
 * CPU time (measured: 38 against 30 microseconds).
 */
export function acceptHeadBlock(prototype: object): void {
  Object.defineProperty(prototype, '_storeHeader', {
    value(this: HeadBlockResponse, firstLine: string, headers: unknown) {
      storeHeader.call(this, this.headBlock === undefined ? firstLine : firstLine + this.headBlock, headers);
    },
  });
}

/** Names and values in turn as the lines of a head. */
export function headLines(list: readonly string[]): string {
  let lines = '';
  for (let i = 0; i < list.length; i += 2) lines += `${list[i]}: ${list[i + 1]}\r\n`;
  return lines;
}
