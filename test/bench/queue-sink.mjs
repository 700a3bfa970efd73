import { createServer } from 'node:http';

/** A destination that answers at once, or after the milliseconds that its path names, and tells how many it got. */
let count = 0;
const server = createServer((request, response) => {
  if (request.url === '/count') {
    response.end(String(count));
    return;
  }
  count += 1;
  request.resume();
  const afterMs = Number(/^\/after\/(\d+)/.exec(request.url)?.[1] ?? 0);
  if (afterMs === 0) response.end();
  else setTimeout(() => response.end(), afterMs);
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
