import { httpSettings } from '../../../src/http/settings.js';
import { createLogger, type LogLevel } from '../../../src/lib/logger.js';
import { eventually } from '../../support/eventually.js';
import { startHttpCore, TOKEN } from '../../support/http-instance.js';

type Line = Record<string, unknown>;

async function startLogged(accessLog: Record<string, unknown>, level: LogLevel = 'info') {
  const lines: Line[] = [];
  const log = createLogger(level, { write: (text) => void lines.push(JSON.parse(text) as Line) });
  const core = await startHttpCore({ accessLog }, {}, log);
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const authorization = `Bearer ${TOKEN}`;
    const reply = await fetch(core.url + path, { headers: { authorization, ...headers } });
    await reply.text();
    return reply;
  };
  return { ...core, lines, get, access: () => lines.filter(({ msg }) => msg === 'access') };
}

it('says nothing unless it is asked for', async () => {
  const gateway = await startLogged({});
  await gateway.get('/test/echo/a');
  await gateway.stop();
  expect(gateway.lines).toEqual([]);
});

it.each(['info', 'error', 'silent'] as const)('has a line for each request at level %s', async (level) => {
  const gateway = await startLogged({ enabled: true }, level);
  const secret = 'a-key-that-nobody-should-read';
  const reply = await gateway.get(`/test/echo/${secret}?times=1&note=${secret}`, {
    'x-request-id': 'mine-1',
    'user-agent': secret,
  });
  expect(reply.status).toBe(200);
  const body = JSON.stringify({ topK: 7 });
  await fetch(`${gateway.url}/test/echo/x`, { method: 'POST', body });
  await gateway.get('/livez');
  await gateway.get('/test/nowhere');
  await eventually(async () => expect(gateway.access()).toHaveLength(3));
  await gateway.stop();
  const [first, second, third] = gateway.access();
  expect(first).toEqual({
    level: 30,
    time: expect.stringMatching(/^\d{4}-/),
    requestId: 'mine-1',
    method: 'GET',
    operation: 'test.echo',
    status: 200,
    durationMs: expect.any(Number),
    principal: 'test',
    client: '127.0.0.1',
    requestBytes: null,
    replyBytes: Number(reply.headers.get('content-length')),
    msg: 'access',
  });
  expect(second).toMatchObject({ status: 401, principal: 'nobody', requestBytes: body.length });
  expect(third).toMatchObject({ status: 404 });
  const text = JSON.stringify(gateway.lines);
  expect(text).not.toContain(secret);
  expect(text).not.toContain(TOKEN);
});

it('holds the fields that are chosen, each cut where a client writes it', async () => {
  const fields = ['userAgent', 'host', 'httpVersion'];
  const gateway = await startLogged({ enabled: true, fields, except: ['test.bytes'] });
  await gateway.get('/test/echo/a', { 'user-agent': 'u'.repeat(1_000) });
  await gateway.get('/test/raw/b');
  await gateway.stop();
  expect(gateway.access()).toEqual([
    {
      level: 30,
      time: expect.anything(),
      userAgent: 'u'.repeat(200),
      host: `127.0.0.1:${gateway.port}`,
      httpVersion: '1.1',
      msg: 'access',
    },
  ]);
});

it('takes a sample, and what failed in any case', async () => {
  const gateway = await startLogged({ enabled: true, sample: 0, except: ['test.fails'] });
  await gateway.get('/test/echo/a');
  await gateway.get('/test/fails');
  await gateway.stop();
  expect(gateway.access()).toMatchObject([{ operation: 'test.fails', status: 500 }]);
  expect(() => httpSettings.parse({ accessLog: { fields: ['path'] } })).toThrow(/fields/);
});
