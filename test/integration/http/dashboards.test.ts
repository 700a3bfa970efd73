import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { services } from '../../../src/services/index.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { queueNamespace } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema } from '../../support/vector.js';

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}
interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
}

const SCHEMA = 'test_dashboards';
const namespace = queueNamespace();
let gateway: RunningGateway;
let text: string;

beforeAll(async () => {
  const apart = services.map(({ name, probe }) => [name, probe.apart]);
  const vector = { database: { schema: SCHEMA }, indexes: [{ dimension: 2 }] };
  gateway = await startGateway({ ...Object.fromEntries(apart), queue: namespace.config, vector });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  const call = (path: string, body: unknown) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKENS.vector}` },
      body: JSON.stringify(body),
    });
  await call('/vector/upsert', { id: 'a', vector: [1, 0] });
  await call('/vector/query', { vector: [1, 0] });
  await call('/vector/delete', ['a']);
  await call('/kv', ['PING']);
  text = await (await fetch(`${gateway.url}/metrics`)).text();
});
afterAll(async () => {
  await gateway?.stop();
  await namespace.remove();
  await dropSchema(SCHEMA);
});

/** Names of metrics in an expression, without those of functions and labels. */
const namesIn = (expression: string) => expression.match(/\b(portico|process|nodejs)_\w+/g) ?? [];
/** Labels that an expression asks for. */
const labelsIn = (expression: string) =>
  [...expression.matchAll(/by \(([^)]*)\)|(\w+)(?==~|!~|=")/g)].flatMap(([, by, one]) =>
    by === undefined ? [one as string] : by.split(',').map((name) => name.trim()),
  );

/** As the parts of a histogram are called. */
const known = () => {
  const types = new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => [name, type]),
  );
  return (name: string) => {
    const [, base = name] = /^(.*)_(?:bucket|count|sum)$/.exec(name) ?? [];
    return types.has(name) || types.get(base) === 'histogram';
  };
};

const dashboard = JSON.parse(readFileSync('config/grafana-dashboard.json', 'utf8')) as Dashboard;
const rules = parse(readFileSync('config/prometheus-alerts.yaml', 'utf8')) as Rules;
const expressions = [
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
  ...rules.groups.flatMap((group) => group.rules.map(({ alert, expr }) => [alert, expr] as const)),
];

it('there are panels and rules', () => {
  expect(dashboard.panels.length).toBeGreaterThan(10);
  expect(expressions.length).toBeGreaterThan(30);
});

it.each(expressions)('%s: every metric and label of %s is there', (_name, expression) => {
  const names = namesIn(expression);
  expect(names).not.toEqual([]);
  expect(names.filter((name) => !known()(name))).toEqual([]);
  // given by Prometheus itself
  const given = new Set(['le', 'instance']);
  const lines = text.split('\n').filter((line) => names.some((name) => line.startsWith(name)));
  const labels = new Set(
    lines.flatMap((line) => [...line.matchAll(/[{,](\w+)="/g)].map(([, label]) => label)),
  );
  // of a metric without a sample yet nothing tells which labels it will have
  if (lines.some((line) => line.includes('{')))
    expect(labelsIn(expression).filter((label) => !given.has(label) && !labels.has(label))).toEqual([]);
});

it('tells what runs, and how queries of an index were answered', () => {
  expect(text).toMatch(/^portico_vector_searches_total\{index="default",plan="exact"\} 1$/m);
  expect(text).toMatch(/^portico_vector_records_written_total\{index="default"\} 1$/m);
  expect(text).toMatch(/^portico_vector_records_deleted_total\{index="default"\} 1$/m);
});
