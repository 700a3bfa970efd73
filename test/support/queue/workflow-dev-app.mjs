import { createServer } from 'node:http';
import { Client } from '@upstash/workflow';
import { serve } from '@upstash/workflow/hono';
import { Hono } from 'hono';

// An application that is told nothing but QSTASH_DEV. It starts a run of its own workflow, prints the run's log when it has
// ended, and what a stranger's call of the workflow is answered.

const app = new Hono();
app.post(
  '/welcome',
  serve(async (context) => {
    const one = await context.run('one', () => `hello ${context.requestPayload}`);
    const webhook = await context.createWebhook('hook');
    await context.run(
      'call',
      async () => (await fetch(webhook.webhookUrl, { method: 'POST', body: 'me' })).status,
    );
    const { request } = await context.waitForWebhook('called', webhook, '1h');
    return `${one} and ${await request.text()}`;
  }),
);

const server = createServer(async (incoming, outgoing) => {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const { method, headers, url } = incoming;
  const request = new Request(`http://${headers.host}${url}`, {
    method,
    headers,
    body: Buffer.concat(chunks),
  });
  const reply = await app.fetch(request);
  outgoing.writeHead(reply.status, Object.fromEntries(reply.headers));
  outgoing.end(Buffer.from(await reply.arrayBuffer()));
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = `http://localhost:${server.address().port}/welcome`;

const client = new Client({});
const { workflowRunId } = await client.trigger({ url, body: 'Ada' });
let run;
while (run?.workflowRunCompletedAt === undefined) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  ({
    runs: [run],
  } = await client.logs({ filter: { workflowRunId } }));
}
const { status: strangerGets } = await fetch(url, {
  method: 'POST',
  headers: { 'upstash-workflow-runid': workflowRunId, 'upstash-workflow-sdk-version': '1' },
  body: '[]',
});
const { workflowState, workflowRunResponse } = run;
console.log(JSON.stringify({ workflowState, workflowRunResponse, strangerGets }));
process.exit();
