import { once } from 'node:events';
import { createServer } from 'node:http';
import { serve } from '@upstash/workflow';

const SLOW_MS = 2_000;
const STEPS = 3;

/**
 * What messages are sent to: `/m/ID` takes them, `/flaky/ID` at the second try, `/slow/ID` after 2 s, `/fail/ID` never;
 * `/workflow` is a workflow of three steps whose payload is the run's id.
 */
export class Destinations {
  /** By id, how often it was taken. */
  taken = new Map();
  flaky = new Set();
  finished = new Set();
  /** Ids of ordered messages as they first came. */
  order = [];

  async start() {
    this.server = createServer((request, response) => void this.answer(request, response));
    this.server.keepAliveTimeout = 5_000;
    await once(this.server.listen(0, '127.0.0.1'), 'listening');
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }

  /** @param {{url: string, token: string}} queue */
  serveWorkflows({ url, token }) {
    this.workflow = serve(
      async (context) => {
        const { id } = context.requestPayload;
        for (let i = 0; i < STEPS; i++) await context.run(`step ${i}`, () => i);
        await context.run('end', () => {
          this.finished.add(id);
        });
      },
      { url: `${this.url}/workflow`, env: { QSTASH_URL: url, QSTASH_TOKEN: token }, disableTelemetry: true },
    ).handler;
  }

  async answer(request, response) {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    await once(request, 'end').catch(() => undefined);
    const [, kind, id] = request.url.split('/');
    if (kind === 'workflow') return this.runWorkflow(request, response, Buffer.concat(chunks));
    if (kind === 'slow') await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
    const isRefused = kind === 'fail' || (kind === 'flaky' && !this.flaky.has(id));
    if (kind === 'flaky') this.flaky.add(id);
    response.statusCode = isRefused ? 500 : 200;
    response.end();
    if (isRefused) return;
    if (kind === 'ordered' && !this.taken.has(id)) this.order.push(id);
    this.taken.set(id, (this.taken.get(id) ?? 0) + 1);
  }

  async runWorkflow(request, response, body) {
    try {
      const answer = await this.workflow(
        new Request(`${this.url}/workflow`, { method: 'POST', headers: request.headers, body }),
      );
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.end(Buffer.from(await answer.arrayBuffer()));
    } catch {
      response.writeHead(500);
      response.end();
    }
  }

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}
