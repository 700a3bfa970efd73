import { Receiver } from '@upstash/qstash';
import { Hono } from 'hono';

/** @param work what is done with a message; throws: it comes again */
export function receiverApp(work, env = process.env) {
  const receiver = new Receiver({
    currentSigningKey: env.QSTASH_CURRENT_SIGNING_KEY,
    nextSigningKey: env.QSTASH_NEXT_SIGNING_KEY,
  });
  const app = new Hono();
  app.post('/work', async (context) => {
    const body = await context.req.text();
    const signature = context.req.header('upstash-signature') ?? '';
    // with the URL, a message for another endpoint is refused as well
    const isOurs = await receiver.verify({ signature, body, url: context.req.url }).catch(() => false);
    if (!isOurs) return context.text('not signed by the queue', 401);
    await work(JSON.parse(body), Number(context.req.header('upstash-retried') ?? 0));
    return context.text('ok');
  });
  return app;
}
