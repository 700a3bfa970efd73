import { createServer } from 'node:http';
import { Client, Receiver } from '@upstash/qstash';
import { serve } from '@upstash/workflow';

// A workflow of empty steps with the SDK's own handler, as a process of its own: `STEPS` one after the other. `/ended` tells
// how many runs have told their end, and had it answered.

let ended = 0;
const { fetch } = globalThis;
globalThis.fetch = async (url, init) => {
  const response = await fetch(url, init);
  if (init?.method === 'DELETE' && response.ok) ended += 1;
  return response;
};

const steps = Number(process.env.STEPS);
const options = {
  qstashClient: new Client({ baseUrl: process.env.QSTASH_URL, token: process.env.QSTASH_TOKEN }),
  receiver: new Receiver({
    currentSigningKey: process.env.QSTASH_CURRENT_SIGNING_KEY,
    nextSigningKey: process.env.QSTASH_NEXT_SIGNING_KEY,
  }),
  disableTelemetry: true,
};
let url;
const handlers = {};
const server = createServer((request, response) => {
  if (request.url === '/ended') return response.end(String(ended));
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    const web = new Request(url + request.url, {
      method: 'POST',
      headers: request.headers,
      body: Buffer.concat(chunks),
    });
    const reply = await handlers[request.url](web);
    response.writeHead(reply.status, Object.fromEntries(reply.headers));
    response.end(Buffer.from(await reply.arrayBuffer()));
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  url = `http://127.0.0.1:${server.address().port}`;
  handlers['/steps'] = serve(
    async (context) => {
      for (let i = 0; i < steps; i++) await context.run(`step ${i}`, () => undefined);
    },
    { ...options, url: `${url}/steps` },
  ).handler;
  console.log(`listening on ${server.address().port}`);
});
