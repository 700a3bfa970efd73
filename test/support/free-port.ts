import { createServer } from 'node:net';

/**
 * Below the backends' own ports (18070 up) and Linux' ephemeral range (32768 up), in which any outgoing connection may
 * take a port that is free now. Tests that run beside these have others.
 */
const [FIRST = 12_100, LAST = 17_900] = (process.env.PORTICO_TEST_PORTS ?? '')
  .split('-')
  .filter(Boolean)
  .map(Number);

const handedOut = new Set<number>();

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** A port of 127.0.0.1 that nobody listens on and that this process has not handed out before. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if (handedOut.has(port) || !(await isFree(port))) continue;
    handedOut.add(port);
    return port;
  }
  throw new Error(`no free port from ${FIRST} to ${LAST}`);
}

/** The first of ten free ports in a row, for a launcher with backends of its own. */
export async function freePortBlock(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const first = FIRST + Math.floor(Math.random() * (LAST - FIRST - 10));
    const ports = Array.from({ length: 10 }, (_, i) => first + i);
    if (ports.some((port) => handedOut.has(port))) continue;
    if (!(await Promise.all(ports.map(isFree))).every(Boolean)) continue;
    for (const port of ports) handedOut.add(port);
    return first;
  }
  throw new Error(`no ten free ports in a row from ${FIRST} to ${LAST}`);
}
