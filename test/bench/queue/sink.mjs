import { createServer } from 'node:http';

/**
 * A destination that answers at once, or after the milliseconds that its path names (`/after/MS`), and tells how many it
 * got (`/count`). Of those with a path `/due/UNIX-MS` it tells how late they came, in ms (`/lateness`).
 */
let count = 0;
const lateness = [];
const server = createServer((request, response) => {
  const { url } = request;
  if (url === '/count') return response.end(String(count));
  if (url === '/lateness') return response.end(JSON.stringify(summary()));
  count += 1;
  request.resume();
  const [, word, number] = /^\/(after|due)\/(\d+)/.exec(url) ?? [];
  if (word === 'due') lateness.push(Date.now() - Number(number));
  const afterMs = word === 'after' ? Number(number) : 0;
  if (afterMs === 0) response.end();
  else setTimeout(() => response.end(), afterMs);
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));

function summary() {
  lateness.sort((a, b) => a - b);
  const at = (share) => lateness[Math.round(share * (lateness.length - 1))];
  return { count: lateness.length, min: at(0), p50: at(0.5), p99: at(0.99), max: at(1) };
}
