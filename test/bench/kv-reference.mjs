// The least that a Node program can do to answer `GET /get/{key}` from Redis: no credentials, no checks, no limits.
import { createServer } from 'node:http';
import { Redis } from 'ioredis';

const redis = new Redis(process.env.PORTICO_REDIS_URL, { enableAutoPipelining: true });

const server = createServer((request, response) => {
  redis.get(decodeURIComponent(request.url.slice('/get/'.length))).then(
    (value) => send(response, 200, { result: value }),
    (error) => send(response, 500, { error: error.message }),
  );
});

function send(response, status, reply) {
  const body = JSON.stringify(reply);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
process.on('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  redis.disconnect();
});
