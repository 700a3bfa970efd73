import { Client, Receiver } from '@upstash/qstash';
import { Redis } from '@upstash/redis/cloudflare';

// biome-ignore lint/style/noDefaultExport: the form that workers have
export default {
  async fetch(request, env) {
    const redis = Redis.fromEnv(env);
    const { pathname, origin } = new URL(request.url);

    if (pathname === '/hits') return Response.json({ hits: await redis.incr('worker:hits') });

    // the queue calls /work in a second, and again if that fails
    if (pathname === '/later') {
      const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
      const { messageId } = await client.publishJSON({
        url: `${origin}/work`,
        body: { done: 'yes' },
        delay: 1,
      });
      return Response.json({ messageId });
    }

    if (pathname === '/work') {
      const receiver = new Receiver({
        currentSigningKey: env.QSTASH_CURRENT_SIGNING_KEY,
        nextSigningKey: env.QSTASH_NEXT_SIGNING_KEY,
      });
      const body = await request.text();
      const signature = request.headers.get('upstash-signature') ?? '';
      if (!(await receiver.verify({ signature, body }).catch(() => false)))
        return new Response('no', { status: 401 });
      await redis.set('worker:done', JSON.parse(body).done, { ex: 60 });
      return new Response('ok');
    }

    if (pathname === '/done') return Response.json({ done: await redis.get('worker:done') });
    return new Response('nothing here', { status: 404 });
  },
};
