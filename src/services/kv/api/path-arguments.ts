import { HttpError } from '../../../http/errors.js';
import type { Argument, Command } from '../resp/resp-encoder.js';

/** The query parameter that carries the token; never an argument. */
export const TOKEN_PARAMETER = '_token';

const PERCENT = 37;

/**
 * A command from a path such as `/set/key/value?EX=100`: the segments are the name and the first arguments, then
 * `body` where there is one, then every query parameter's name and value (its name alone where it has no `=`).
 * Segments are split before they are decoded, and decode to any bytes; a plus sign is a plus sign.
 * @param target path and query as sent, starting with `/` or `?`
 * @throws HttpError `invalid_request`
 */
export function commandOfPath(target: string, body: Buffer): Command {
  const query = target.indexOf('?');
  const command = segmentsOfPath(query < 0 ? target : target.slice(0, query));
  if (body.length > 0) command.push(body);
  if (query >= 0) appendParameters(command, target.slice(query + 1));
  return command;
}

/** The segments of a path without query, decoded. @throws HttpError `invalid_request` */
export function segmentsOfPath(path: string): Argument[] {
  const segments = path.length > 1 ? path.slice(1).split('/') : [];
  return path.includes('%') ? segments.map(decode) : segments;
}

function appendParameters(command: Argument[], query: string): void {
  for (const parameter of query.split('&')) {
    if (parameter === '') continue;
    const equals = parameter.indexOf('=');
    const name = decode(equals < 0 ? parameter : parameter.slice(0, equals));
    if (name === TOKEN_PARAMETER) continue;
    command.push(name);
    if (equals >= 0) command.push(decode(parameter.slice(equals + 1)));
  }
}

/** Text where the decoded bytes are ASCII, else the bytes. */
function decode(part: string): Argument {
  if (!part.includes('%')) return part;
  const source = Buffer.from(part);
  const bytes = Buffer.allocUnsafe(source.length);
  let length = 0;
  let ascii = true;
  for (let i = 0; i < source.length; i++) {
    let byte = source[i] as number;
    if (byte === PERCENT) {
      byte = hexDigit(source[i + 1]) * 16 + hexDigit(source[i + 2]);
      i += 2;
    }
    if (byte > 127) ascii = false;
    bytes[length++] = byte;
  }
  const decoded = bytes.subarray(0, length);
  return ascii ? decoded.toString('latin1') : decoded;
}

function hexDigit(code: number | undefined): number {
  const digit = code === undefined ? Number.NaN : Number.parseInt(String.fromCharCode(code), 16);
  if (Number.isNaN(digit))
    throw new HttpError(
      'invalid_request',
      'ERR the path or query holds a "%" that two hex digits do not follow',
    );
  return digit;
}
