import type { IncomingMessage } from 'node:http';
import { HttpError } from '../../../http/errors.js';

/** Largest request; commits may list thousands of partitions. */
const REQUEST_BYTES = 16 * 1024 * 1024;

/** A body whose first line is there long before its end. */
export class LineBody {
  private text = '';
  private wake: () => void = () => {};
  private isOver = false;

  constructor(private readonly request: IncomingMessage) {
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      this.text += chunk;
      if (this.text.length > REQUEST_BYTES) request.destroy();
      this.wake();
    });
    const over = () => {
      this.isOver = true;
      this.wake();
    };
    request.on('end', over).on('close', over).on('error', over);
  }

  async line(): Promise<string> {
    while (!this.text.includes('\n') && !this.isOver) await this.change();
    const end = this.text.indexOf('\n');
    if (end < 0) throw new HttpError('invalid_request', 'The request has no line.');
    const line = this.text.slice(0, end);
    this.text = this.text.slice(end + 1);
    return line;
  }

  /** What follows, when it has ended; nothing of a body that was broken off. */
  async rest(until: AbortSignal): Promise<string> {
    const give = () => this.wake();
    until.addEventListener('abort', give);
    while (!this.isOver && !until.aborted) await this.change();
    until.removeEventListener('abort', give);
    return this.request.complete ? this.text : '';
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }
}
