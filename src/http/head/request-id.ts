import { randomBytes } from 'node:crypto';

const PLAIN = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * A source of request ids: the client's own `X-Request-Id` where it is short and plain, otherwise a random prefix
 * per process and a counter, which is unique and costs no system call a request.
 */
export function requestIds(
  prefix = randomBytes(6).toString('hex'),
): (fromClient: string | string[] | undefined) => string {
  let count = 0;
  return (fromClient) => {
    if (typeof fromClient === 'string' && PLAIN.test(fromClient)) return fromClient;
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}
