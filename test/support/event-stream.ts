import { type IncomingHttpHeaders, request } from 'node:http';
import { eventually } from './eventually.js';

/** A `text/event-stream` that a test reads, byte for byte. */
export class EventStreamClient {
  text = '';
  ended = false;

  private constructor(
    readonly status: number,
    readonly headers: IncomingHttpHeaders,
    private readonly leave: () => void,
  ) {}

  /** Resolves when the head of the reply is there. */
  static open(url: string, token: string, options: { method?: string; body?: string } = {}) {
    const { method = 'GET', body } = options;
    return new Promise<EventStreamClient>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      const outgoing = request(url, { method, headers, agent: false }, (incoming) => {
        const { statusCode = 0, headers: replied } = incoming;
        const client = new EventStreamClient(statusCode, replied, () => outgoing.destroy());
        incoming.setEncoding('utf8');
        incoming.on('data', (chunk: string) => {
          client.text += chunk;
        });
        incoming.on('error', () => undefined);
        incoming.on('close', () => {
          client.ended = true;
        });
        resolve(client);
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }

  /** Texts of the events until now, without comments. */
  get events(): string[] {
    return this.text
      .split('\n\n')
      .slice(0, -1)
      .filter((event) => event.startsWith('data: '))
      .map((event) => event.slice('data: '.length));
  }

  /** The events once there are `count` of them. */
  async received(count: number): Promise<string[]> {
    await eventually(() => expect(this.events.length).toBeGreaterThanOrEqual(count));
    return this.events;
  }

  async untilEnd(): Promise<string> {
    await eventually(() => expect(this.ended).toBe(true));
    return this.text;
  }

  close(): void {
    this.leave();
  }
}
