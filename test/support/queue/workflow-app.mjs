import { createServer } from 'node:http';
import { Client, Receiver } from '@upstash/qstash';
import { serve } from '@upstash/workflow';

// An application with one workflow, as a program of its own that a test may end at any moment. Every step adds a number;
// the result is their sum, so a step that is lost or counted twice shows.

const port = Number(process.env.APP_PORT);
const url = `http://127.0.0.1:${port}`;
const { handler } = serve(
  async (context) => {
    const { number } = context.requestPayload;
    const one = await context.run('one', () => number);
    const [two, three] = await Promise.all([
      context.run('two', () => one + 1),
      context.run('three', () => one + 2),
      context.sleep('nap', 1),
    ]);
    const { status, body } = await context.call('called', {
      url: `${url}/plain`,
      method: 'POST',
      body: { two, three },
      retries: 20,
      retryDelay: '1000',
    });
    return context.run('sum', () => ({ status, sum: one + body.sum }));
  },
  {
    url: `${url}/workflow`,
    qstashClient: new Client({ baseUrl: process.env.QSTASH_URL, token: process.env.QSTASH_TOKEN }),
    receiver: new Receiver({
      currentSigningKey: process.env.QSTASH_CURRENT_SIGNING_KEY,
      nextSigningKey: process.env.QSTASH_NEXT_SIGNING_KEY,
    }),
    disableTelemetry: true,
  },
);

async function plain(request) {
  const { two, three } = await request.json();
  return Response.json({ sum: two + three });
}

createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    try {
      const web = new Request(url + request.url, {
        method: 'POST',
        headers: request.headers,
        body: Buffer.concat(chunks),
      });
      const reply = await (request.url === '/plain' ? plain : handler)(web);
      response.writeHead(reply.status, Object.fromEntries(reply.headers));
      response.end(Buffer.from(await reply.arrayBuffer()));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
}).listen(port, '127.0.0.1', () => console.log('listening'));
