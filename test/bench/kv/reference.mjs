// What a Node program does that answers the same requests from Redis in the plain way: no credentials, no checks, no limits.
import { createServer } from 'node:http';
import { Redis } from 'ioredis';

const redis = new Redis(process.env.PORTICO_REDIS_URL, { enableAutoPipelining: true });

const server = createServer((request, response) => {
  const answer = (reply) => send(response, 200, reply);
  const fail = (error) => send(response, 500, { error: error.message });
  const { url } = request;
  if (url.startsWith('/get/'))
    redis.get(decodeURIComponent(url.slice('/get/'.length))).then((result) => answer({ result }), fail);
  else textOf(request).then(JSON.parse).then(run.bind(undefined, url)).then(answer, fail);
});

/** Reply to a body that is a command, or rows of them. */
async function run(url, body) {
  if (url === '/pipeline') return resultsOf(await redis.pipeline(body).exec());
  if (url === '/multi-exec') return resultsOf(await redis.multi(body).exec());
  return { result: await redis.call(...body) };
}

function textOf(request) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => resolve(Buffer.concat(chunks).toString()));
    request.on('error', reject);
  });
}

function resultsOf(rows) {
  return rows.map(([error, result]) => (error === null ? { result } : { error: error.message }));
}

function send(response, status, reply) {
  const body = JSON.stringify(reply);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

// as Portico's: an idle connection that is closed after Node's 5 s could be just about to be used again
server.keepAliveTimeout = 75_000;
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
process.on('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  redis.disconnect();
});
