import { createServer } from 'node:http';

// A shop of three pages. `POST /orders` publishes an order to the queue, which delivers it to `POST /deliveries`; that one
// counts it in Redis. `GET /orders` says how many have arrived. There is nothing of Portico in here but a URL and tokens.
const { PORTICO_URL, PORTICO_KV_TOKEN, PORTICO_QUEUE_TOKEN, APP_URL } = process.env;

async function redis(...command) {
  const headers = { authorization: `Bearer ${PORTICO_KV_TOKEN}` };
  const answer = await fetch(`${PORTICO_URL}/kv`, { method: 'POST', headers, body: JSON.stringify(command) });
  return (await answer.json()).result;
}

async function publish(order) {
  const headers = { authorization: `Bearer ${PORTICO_QUEUE_TOKEN}`, 'content-type': 'application/json' };
  const url = `${PORTICO_URL}/queue/v2/publish/${APP_URL}/deliveries`;
  const answer = await fetch(url, { method: 'POST', headers, body: order });
  return answer.status;
}

const pages = {
  'GET /healthy': async () => 'yes',
  'POST /orders': async (body) => publish(body),
  'POST /deliveries': async () => redis('INCR', 'orders'),
  'GET /orders': async () => (await redis('GET', 'orders')) ?? 0,
};

createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  const page = pages[`${request.method} ${request.url}`];
  response.writeHead(page ? 200 : 404).end(page ? String(await page(body)) : '');
}).listen(3000);
