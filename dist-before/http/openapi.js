import { z } from 'zod';
/** The OpenAPI 3.1 document of every route, from the same schemas that check the requests. */
export function openapiDocument(services, version) {
    const paths = {};
    const schemas = {};
    const responses = {};
    for (const service of services) {
        schemas[`${service.name}.error`] = component(`${service.name}.error`, service.error, 'output');
        responses[`${service.name}.error`] = jsonContent(refTo('schemas', `${service.name}.error`), 'Refused or failed.');
        for (const route of service.routes) {
            Object.assign(schemas, routeSchemas(route));
            const path = openapiPath(service.basePath, route.documentedPath ?? route.path);
            for (const method of route.methods) {
                paths[path] = { ...paths[path], [method.toLowerCase()]: operation(service, route, method) };
            }
        }
    }
    return {
        openapi: '3.1.0',
        info: {
            title: 'Portico',
            version,
            description: 'One HTTP front for the Redis, Kafka, Postgres/pgvector and RabbitMQ that you already run.',
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
function refTo(kind, name) {
    return { $ref: `#/components/${kind}/${name}` };
}
function jsonContent(schema, description) {
    return {
        ...(description === undefined ? {} : { description }),
        content: { 'application/json': { schema } },
    };
}
/** Bodies stand once, under the operation's id, however many methods and paths use them. */
function routeSchemas(route) {
    const body = route.request?.body;
    const request = `${route.operationId}.request`;
    const reply = `${route.operationId}.reply`;
    return {
        ...(body === undefined ? {} : { [request]: component(request, body, 'input') }),
        [reply]: component(reply, route.reply, 'output'),
    };
}
/** `/consume/:group/*rest` below `/broker` is `/broker/consume/{group}/{rest}`; optional parts are shown as required. */
function openapiPath(basePath, path) {
    const joined = `${basePath === '/' ? '' : basePath}${path === '/' ? '' : path}`;
    return joined.replace(/[{}]/g, '').replace(/[:*]([A-Za-z_]\w*)/g, '{$1}') || '/';
}
function operation(service, route, method) {
    const request = route.request ?? {};
    const statuses = new Set([401, 404, 413, 503, 504, ...(route.errors ?? [])]);
    return {
        operationId: route.methods.length === 1 ? route.operationId : `${route.operationId}.${method.toLowerCase()}`,
        summary: route.summary,
        tags: [service.name],
        security: [{ [service.auth]: [] }],
        parameters: [
            ...pathParameters(route.documentedPath ?? route.path, request.params),
            ...parameters('query', request.query),
            ...parameters('header', request.headers),
        ],
        ...(request.body === undefined || method === 'HEAD'
            ? {}
            : { requestBody: jsonContent(refTo('schemas', `${route.operationId}.request`)) }),
        responses: {
            200: jsonContent(refTo('schemas', `${route.operationId}.reply`), 'Done.'),
            ...Object.fromEntries([...statuses].sort().map((status) => [status, refTo('responses', `${service.name}.error`)])),
        },
    };
}
function pathParameters(path, schema) {
    const described = (schema === undefined ? {} : schemaOf(schema, 'input'));
    return [...path.matchAll(/[:*]([A-Za-z_]\w*)/g)].map(([, name]) => ({
        name,
        in: 'path',
        required: true,
        schema: described.properties?.[name] ?? { type: 'string' },
    }));
}
function parameters(place, schema) {
    if (schema === undefined)
        return [];
    const { properties = {}, required = [] } = schemaOf(schema, 'input');
    return Object.entries(properties).map(([name, property]) => ({
        name,
        in: place,
        required: required.includes(name),
        schema: property,
    }));
}
/** A schema under `components.schemas`; what it refers to inside itself is found from the document's root. */
function component(name, schema, io) {
    const text = JSON.stringify(schemaOf(schema, io));
    return JSON.parse(text.replaceAll('"$ref":"#', `"$ref":"#/components/schemas/${name}`));
}
/** JSON Schema of what is sent (`input`) or answered (`output`); what JSON Schema cannot say is shown as anything. */
function schemaOf(schema, io) {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
    return rest;
}
function operationsPaths() {
    const page = (operationId, summary, type, parameters = []) => ({
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
        '/readyz': page('operations.readyz', 'Whether every backend answers (503 when one does not), and which.', 'application/json'),
        '/readyz/{service}': page('operations.readyz.service', 'The same for one service.', 'application/json', [
            { name: 'service', in: 'path', required: true, schema: { type: 'string' } },
        ]),
        '/metrics': page('operations.metrics', 'Metrics for Prometheus.', 'text/plain'),
        '/openapi.json': page('operations.openapi', 'This document.', 'application/json'),
    };
}
//# sourceMappingURL=openapi.js.map