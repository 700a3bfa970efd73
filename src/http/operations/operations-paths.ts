import type { Json } from './openapi-schemas.js';

const JSON_TYPE = 'application/json';
const states = { status: 'up', services: { kv: { status: 'up' } } };
const error = { description: 'Refused or failed.' };

/** The pages for those who run Portico as the OpenAPI document shows them. */
export function operationsPaths(): Record<string, Json> {
  return {
    '/livez': page('operations.livez', 'Whether the process answers.', { example: { status: 'ok' } }),
    '/readyz': page('operations.readyz', 'Whether every service is up, and which; with the token, why not.', {
      example: states,
      errors: [404, 503],
      tokenIsOptional: true,
    }),
    '/readyz/{service}': page('operations.readyz.service', 'The same for one service.', {
      example: states,
      errors: [404, 503],
      tokenIsOptional: true,
      parameters: [
        { name: 'service', in: 'path', required: true, schema: { type: 'string' }, example: 'kv' },
      ],
    }),
    '/metrics': page(
      'operations.metrics',
      'Metrics for Prometheus; open on a loopback address without a token.',
      {
        type: 'text/plain',
        example: 'portico_http_requests_in_flight 1',
        errors: [401],
        tokenIsOptional: true,
      },
    ),
    '/docs': page('operations.docs', 'This document as a page on which every call can be tried.', {
      type: 'text/html',
      example: '<!doctype html>',
    }),
    '/openapi.json': page('operations.openapi', 'This document.', {
      example: { openapi: '3.1.0' },
      tokenIsOptional: true,
    }),
  };
}

interface PageWords {
  readonly type?: string;
  readonly example: unknown;
  readonly errors?: readonly number[];
  readonly tokenIsOptional?: boolean;
  readonly parameters?: readonly Json[];
}

function page(operationId: string, summary: string, words: PageWords): Json {
  const { type = JSON_TYPE, example, errors = [404], tokenIsOptional = false, parameters = [] } = words;
  const schema = { type: type === JSON_TYPE ? 'object' : 'string' };
  return {
    get: {
      operationId,
      summary: summary.replace(/\.$/, ''),
      description: summary,
      tags: ['operations'],
      security: tokenIsOptional ? [{}, { operator: [] }] : [],
      parameters,
      responses: {
        200: { description: 'Done.', content: { [type]: { schema, example } } },
        ...Object.fromEntries(errors.map((status) => [status, error])),
      },
    },
  };
}
