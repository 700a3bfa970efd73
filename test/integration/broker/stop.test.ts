import { brokerClient, kafkaNamespace } from '../../support/broker/kafka.js';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';

it('answers long polls with what they have when the gateway stops, instead of waiting them out', async () => {
  const kafka = await kafkaNamespace();
  const topic = await kafka.topic('stop', 1);
  const gateway = await startGateway({ broker: {} });
  const call = brokerClient(gateway.url);
  const group = kafka.name('g-stop');
  // the instance has joined and waits for records
  await eventually(async () => {
    const { headers } = await call(`/consume/${group}/one/${topic}?timeout=1000`);
    expect(headers.get('broker-consumer-state')).toBe('joined');
  });
  const polls = [
    call(`/consume/${group}/one/${topic}?timeout=60000`),
    call('/fetch', { topic, partition: 0, offset: 0, timeout: 60_000 }),
  ];
  await eventually(async () => {
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    // these and the one that asks
    expect(metrics).toMatch(/^portico_http_requests_in_flight 3$/m);
  });
  const started = performance.now();
  await gateway.stop();
  expect(performance.now() - started).toBeLessThan(30_000);
  for (const { status, body } of await Promise.all(polls))
    expect({ status, body }).toEqual({ status: 200, body: [] });
  await kafka.dispose();
});
