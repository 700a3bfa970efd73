import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

const CONTINUE = Buffer.from('HTTP/1.1 100');
/** Of the status that is shown instead: 103, early hints. */
const THREE = '3'.charCodeAt(0);

/** The same callback for a connection that takes a 100 nobody asked for. */
export function tolerant(callback: buildConnector.Callback): buildConnector.Callback {
  return (...result) => {
    const [, socket] = result;
    // with an error there is none, whatever the types say
    if (socket) allowContinue(socket);
    callback(...result);
  };
}

/**
 * Lets a server say `100 Continue` although nobody asked (RFC 9110, 15.2: a client must be able to take it). undici 8.12
 * takes every interim response but this one, for which it breaks the connection: the message has arrived, counts as failed
 * and is delivered again. So the first bytes of an answer that say 100 are read as 103.
 */
function allowContinue(socket: Socket): void {
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket);
  // an answer begins with the first bytes after a request; later ones may be a body that looks like one
  let begins = false;
  socket.write = ((...args: Parameters<Socket['write']>) => {
    begins = true;
    return write(...args);
  }) as Socket['write'];
  socket.read = (size?: number) => {
    const chunk = read(size) as Buffer | null;
    if (!begins || chunk === null || chunk.length === 0) return chunk;
    begins = chunk.length >= CONTINUE.length && CONTINUE.compare(chunk, 0, CONTINUE.length) === 0;
    if (begins) chunk[CONTINUE.length - 1] = THREE;
    return chunk;
  };
}
