import type { z } from 'zod';
import type { Method, OperationExample, RouteDescription, ServiceDocumentation, TextForm } from '../route.js';
import { componentName, type Json, ref, SchemaComponents } from './openapi-schemas.js';
import { operationsPaths } from './operations-paths.js';

/** One service as the document shows it. */
export interface DocumentedService {
  readonly name: string;
  /** Path of its first instance, such as `/kv`. */
  readonly basePath: string;
  readonly auth: 'bearer' | 'basic';
  /** Schema of the body of every error. */
  readonly error: z.ZodType;
  readonly routes: readonly RouteDescription[];
  readonly documentation: ServiceDocumentation;
}

/** Where the services are reached. */
export interface DocumentedServer {
  readonly url: string;
  readonly description: string;
}

const JSON_TYPE = 'application/json';

/**
 * The OpenAPI 3.1 document of every route, from the same schemas that check the requests. It rests behind each route: all of
 * them take 70 ms.
 */
export function* openapiDocument(
  services: readonly DocumentedService[],
  version: string,
  servers: readonly DocumentedServer[],
): Generator<void, Json> {
  const paths: Record<string, Json> = {};
  const components = new SchemaComponents();
  const responses: Record<string, Json> = {};
  for (const service of services) {
    const name = componentName(service.name, 'error');
    responses[name] = content(JSON_TYPE, components.add(name, service.error, 'output'), 'Refused or failed.');
    for (const route of service.routes) {
      if (route.isUndocumented === true) continue;
      const path = openapiPath(service.basePath, route.documentedPath ?? route.path);
      const method = documentedMethod(route);
      paths[path] = { ...paths[path], [method.toLowerCase()]: operation(service, route, method, components) };
      yield;
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portico',
      version,
      description:
        'One HTTP front for the Redis, Kafka, Postgres/pgvector and RabbitMQ that you already run. Each operation is shown with one method; its description says which others do the same.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers,
    tags: [
      ...services.map(({ name, documentation }) => ({ name, description: documentation.about })),
      { name: 'operations', description: 'Pages for those who run the gateway.' },
    ],
    paths: { ...paths, ...operationsPaths() },
    components: {
      securitySchemes: {
        ...Object.fromEntries(services.map(({ name, auth }) => [name, { type: 'http', scheme: auth }])),
        operator: { type: 'http', scheme: 'bearer', description: 'http.metricsToken' },
      },
      schemas: components.schemas,
      responses,
    },
  };
}

/** Of routes that it makes happen once at most. */
const KEY_PARAMETER: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'The same request with the same key gets the same reply; 409 while it is worked on, 422 for another request.',
  schema: { type: 'string', maxLength: 256 },
};

const WITH_BODY: readonly Method[] = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET'];
const WITHOUT_BODY: readonly Method[] = ['GET', 'DELETE', 'POST', 'PATCH', 'PUT'];

/** Clients are generated with one function an operation, whatever methods it takes: by POST where there is a body or a change. */
function documentedMethod(route: RouteDescription): Method {
  const order = route.request?.body !== undefined || route.changesData === true ? WITH_BODY : WITHOUT_BODY;
  const chosen = route.documentedMethod ?? order.find((method) => route.methods.includes(method));
  if (chosen === undefined) throw new Error(`${route.operationId} has no method to show`);
  return chosen;
}

function content(
  type: string,
  schema: Json,
  description?: string,
  beside?: TextForm,
  example?: unknown,
): Json {
  const shown = { schema, ...(example === undefined ? {} : { example }) };
  return {
    ...(description === undefined ? {} : { description }),
    content: {
      [type]: shown,
      ...(beside === undefined
        ? {}
        : { [beside.contentType]: { schema: { type: 'string', description: beside.description } } }),
    },
  };
}

/** `/consume/:group/*rest` below `/broker` is `/broker/consume/{group}/{rest}`; optional parts are shown as required. */
function openapiPath(basePath: string, path: string): string {
  const joined = `${basePath === '/' ? '' : basePath}${path === '/' ? '' : path}`;
  return joined.replace(/[{}]/g, '').replace(/[:*]([A-Za-z_]\w*)/g, '{$1}') || '/';
}

function operation(
  service: DocumentedService,
  route: RouteDescription,
  method: Method,
  components: SchemaComponents,
): Json {
  const { request = {}, besideJson: beside = {}, operationId } = route;
  const example = exampleOf(service, route);
  const name = (part: string) => componentName(operationId, part);
  const given = { name: name('parameter'), components, example };
  return {
    operationId,
    ...wordsOf(route, method),
    tags: [service.name],
    security: route.isOpen === true ? [] : [{ [service.name]: [] }],
    parameters: [
      ...pathParameters(service, route, given),
      ...parameters('query', request.query, given),
      ...parameters('header', request.headers, given),
      ...(route.isKeyed === true ? [KEY_PARAMETER] : []),
    ],
    ...(request.body === undefined || method === 'GET'
      ? {}
      : {
          requestBody: {
            required: !request.body.safeParse(undefined).success,
            ...content(
              JSON_TYPE,
              components.add(name('request'), request.body, 'input'),
              undefined,
              beside.body,
              example.body,
            ),
          },
        }),
    responses: {
      [route.replyStatus ?? 200]: content(
        route.replyType ?? JSON_TYPE,
        components.add(name('reply'), route.reply, 'output'),
        'Done.',
        beside.reply,
        example.reply,
      ),
      ...Object.fromEntries(
        statusesOf(route).map((status) => [status, ref(componentName(service.name, 'error'), 'responses')]),
      ),
    },
  };
}

/** @throws where there is none: a document without it helps nobody */
function exampleOf(
  { documentation }: DocumentedService,
  { operationId }: RouteDescription,
): OperationExample {
  const example = documentation.examples[operationId.replace(/InNamespace$/, '')];
  if (example === undefined) throw new Error(`${operationId} has no example`);
  return example;
}

function statusesOf(route: RouteDescription): number[] {
  const statuses = new Set([
    ...(route.isOpen === true ? [] : [401]),
    404,
    413,
    ...(route.keepsEncoding === true ? [] : [415]),
    503,
    504,
    ...(route.errors ?? []),
    ...(route.isKeyed === true ? [409, 422] : []),
  ]);
  return [...statuses].sort();
}

/** A title of a line, and all that is to be said. */
function wordsOf({ summary, methods, changesData, isOpen }: RouteDescription, shown: Method) {
  const others = methods.filter((method) => method !== shown);
  const [title = summary] = /^.{20,}?(?=[.;:]( |$))/.exec(summary) ?? [];
  const notes = [
    ...(others.length === 0 ? [] : [`Takes ${others.join(', ')} as well.`]),
    ...(changesData === true && isOpen !== true ? ['Refused (403) to a token that may only read.'] : []),
  ];
  return { summary: title.replace(/\.$/, ''), description: [summary, ...notes].join(' ') };
}

interface GivenParameters {
  readonly name: string;
  readonly components: SchemaComponents;
  readonly example: OperationExample;
}

function pathParameters(
  { documentation }: DocumentedService,
  { path, documentedPath, request }: RouteDescription,
  { name: within, components }: GivenParameters,
): Json[] {
  const described = (
    request?.params === undefined ? {} : components.inline(within, request.params, 'input')
  ) as { properties?: Record<string, unknown> };
  return [...(documentedPath ?? path).matchAll(/[:*]([A-Za-z_]\w*)/g)].map(([, name = '']) => {
    const example = documentation.names[name];
    if (example === undefined) throw new Error(`the parameter ${name} of ${path} has no example`);
    return {
      name,
      in: 'path',
      required: true,
      schema: described.properties?.[name] ?? { type: 'string' },
      example,
    };
  });
}

/** OpenAPI passes these over: they are described elsewhere. */
const NO_PARAMETERS = new Set(['accept', 'content-type', 'authorization']);

function parameters(
  place: 'query' | 'header',
  schema: z.ZodType | undefined,
  { name: within, components, example }: GivenParameters,
): Json[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = components.inline(within, schema, 'input') as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  const values = place === 'query' ? example.query : example.headers;
  return Object.entries(properties)
    .filter(([name]) => place === 'query' || !NO_PARAMETERS.has(name))
    .map(([name, { description, ...property }]) => ({
      name: place === 'query' ? name : canonical(name),
      in: place,
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: property,
      ...(values?.[name] === undefined ? {} : { example: values[name] }),
    }));
}

/** `upstash-delay`: `Upstash-Delay`. */
function canonical(header: string): string {
  return header.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
}
