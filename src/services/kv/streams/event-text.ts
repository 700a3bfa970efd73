/** A comment: clients of `text/event-stream` skip it. */
export const HEARTBEAT = ': ping\n\n';
/** Tells that the connection to Redis was lost and is there again: messages in between were missed. */
export const RECONNECTED = Buffer.from(': reconnected\n\n');

const LINE_BREAK = /\r\n|[\r\n]/;

/**
 * One event of `text/event-stream` (https://html.spec.whatwg.org/multipage/server-sent-events.html). A browser joins the
 * lines of a text that has several. `@upstash/redis` reads each line that begins with `data: ` as an event of its own: the
 * lines after the first are written without that blank, so that it skips them instead of taking text that somebody has
 * published for another channel's message.
 */
export function eventOf(text: string): Buffer {
  if (!LINE_BREAK.test(text)) return Buffer.from(`data: ${text}\n\n`);
  const [first, ...rest] = text.split(LINE_BREAK);
  // one blank after the colon is dropped by whoever reads it
  const further = rest.map((line) => `data:${line.startsWith(' ') ? ' ' : ''}${line}\n`);
  return Buffer.from(`data: ${first}\n${further.join('')}\n`);
}

/** Longer text is not looked at: `@upstash/redis` gives up on a line of 1 MiB anyway. */
const LONGEST_JSON = 1024 * 1024;

/** JSON over several lines in one, which is the same value: line breaks stand between its tokens only. Other text as it is. */
export function singleLine(payload: string): string {
  if (payload.length > LONGEST_JSON || !LINE_BREAK.test(payload) || !isJson(payload)) return payload;
  return payload.replace(/[\r\n]/g, ' ');
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
