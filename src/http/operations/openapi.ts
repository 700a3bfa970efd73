import { z } from 'zod';
import type { RouteDescription, TextForm } from '../route.js';

/** One service as the document shows it. */
export interface DocumentedService {
  readonly name: string;
  /** Path of its first instance in the default configuration, such as `/kv`. */
  readonly basePath: string;
  readonly auth: 'bearer' | 'basic';
  /** Schema of the body of every error. */
  readonly error: z.ZodType;
  readonly routes: readonly RouteDescription[];
}

const JSON_TYPE = 'application/json';

type Json = { [key: string]: unknown };

/**
 * The OpenAPI 3.1 document of every route, from the same schemas that check the requests. It rests behind each route: all of
 * them take 70 ms.
 */
export function* openapiDocument(
  services: readonly DocumentedService[],
  version: string,
): Generator<void, Json> {
  const paths: Record<string, Json> = {};
  const schemas: Record<string, Json> = {};
  const responses: Record<string, Json> = {};
  for (const service of services) {
    schemas[`${service.name}.error`] = component(`${service.name}.error`, service.error, 'output');
    responses[`${service.name}.error`] = content(
      JSON_TYPE,
      refTo('schemas', `${service.name}.error`),
      'Refused or failed.',
    );
    for (const route of service.routes) {
      Object.assign(schemas, routeSchemas(route));
      const path = openapiPath(service.basePath, route.documentedPath ?? route.path);
      for (const method of route.methods) {
        paths[path] = { ...paths[path], [method.toLowerCase()]: operation(service, route, method) };
      }
      yield;
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portico',
      version,
      description:
        'One HTTP front for the Redis, Kafka, Postgres/pgvector and RabbitMQ that you already run.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://127.0.0.1:8070' }],
    paths: { ...paths, ...operationsPaths() },
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        basic: { type: 'http', scheme: 'basic' },
      },
      schemas,
      responses,
    },
  };
}

function refTo(kind: 'schemas' | 'responses', name: string): Json {
  return { $ref: `#/components/${kind}/${name}` };
}

function content(type: string, schema: Json, description?: string, beside?: TextForm): Json {
  return {
    ...(description === undefined ? {} : { description }),
    content: {
      [type]: { schema },
      ...(beside === undefined
        ? {}
        : { [beside.contentType]: { schema: { type: 'string', description: beside.description } } }),
    },
  };
}

/** Bodies stand once, under the operation's id, however many methods and paths use them. */
function routeSchemas(route: RouteDescription): Record<string, Json> {
  const body = route.request?.body;
  const request = `${route.operationId}.request`;
  const reply = `${route.operationId}.reply`;
  return {
    ...(body === undefined ? {} : { [request]: component(request, body, 'input') }),
    [reply]: component(reply, route.reply, 'output'),
  };
}

/** `/consume/:group/*rest` below `/broker` is `/broker/consume/{group}/{rest}`; optional parts are shown as required. */
function openapiPath(basePath: string, path: string): string {
  const joined = `${basePath === '/' ? '' : basePath}${path === '/' ? '' : path}`;
  return joined.replace(/[{}]/g, '').replace(/[:*]([A-Za-z_]\w*)/g, '{$1}') || '/';
}

function operation(service: DocumentedService, route: RouteDescription, method: string): Json {
  const { request = {}, besideJson: beside = {} } = route;
  const statuses = new Set([
    ...(route.isOpen === true ? [] : [401]),
    404,
    413,
    ...(route.keepsEncoding === true ? [] : [415]),
    503,
    504,
    ...(route.errors ?? []),
  ]);
  return {
    operationId:
      route.methods.length === 1 ? route.operationId : `${route.operationId}.${method.toLowerCase()}`,
    summary: route.summary,
    tags: [service.name],
    security: route.isOpen === true ? [] : [{ [service.auth]: [] }],
    parameters: [
      ...pathParameters(route.documentedPath ?? route.path, request.params),
      ...parameters('query', request.query),
      ...parameters('header', request.headers),
    ],
    ...(request.body === undefined || method === 'HEAD'
      ? {}
      : {
          requestBody: content(
            JSON_TYPE,
            refTo('schemas', `${route.operationId}.request`),
            undefined,
            beside.body,
          ),
        }),
    responses: {
      [route.replyStatus ?? 200]: content(
        route.replyType ?? JSON_TYPE,
        refTo('schemas', `${route.operationId}.reply`),
        'Done.',
        beside.reply,
      ),
      ...Object.fromEntries(
        [...statuses].sort().map((status) => [status, refTo('responses', `${service.name}.error`)]),
      ),
    },
  };
}

function pathParameters(path: string, schema: z.ZodType | undefined): Json[] {
  const described = (schema === undefined ? {} : schemaOf(schema, 'input')) as {
    properties?: Record<string, unknown>;
  };
  return [...path.matchAll(/[:*]([A-Za-z_]\w*)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: described.properties?.[name as string] ?? { type: 'string' },
  }));
}

function parameters(place: 'query' | 'header', schema: z.ZodType | undefined): Json[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: required.includes(name),
    schema: property,
  }));
}

/** A schema under `components.schemas`; what it refers to inside itself is found from the document's root. */
function component(name: string, schema: z.ZodType, io: 'input' | 'output'): Json {
  const text = JSON.stringify(schemaOf(schema, io));
  return JSON.parse(text.replaceAll('"$ref":"#', `"$ref":"#/components/schemas/${name}`)) as Json;
}

/** JSON Schema of what is sent (`input`) or answered (`output`); what JSON Schema cannot say is shown as anything. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;
  return rest;
}

function operationsPaths(): Record<string, Json> {
  const page = (operationId: string, summary: string, type: string, parameters: Json[] = []): Json => ({
    get: {
      operationId,
      summary,
      tags: ['operations'],
      parameters,
      responses: { 200: { description: 'Done.', content: { [type]: {} } } },
    },
  });
  return {
    '/livez': page('operations.livez', 'Whether the process answers.', 'application/json'),
    '/readyz': page(
      'operations.readyz',
      'Whether every service is up (503 when one is not), and which; with the metrics token, why not.',
      'application/json',
    ),
    '/readyz/{service}': page('operations.readyz.service', 'The same for one service.', 'application/json', [
      { name: 'service', in: 'path', required: true, schema: { type: 'string' } },
    ]),
    '/metrics': page('operations.metrics', 'Metrics for Prometheus.', 'text/plain'),
    '/openapi.json': page('operations.openapi', 'This document.', 'application/json'),
  };
}
