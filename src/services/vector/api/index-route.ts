import type { z } from 'zod';
import type { AuditKind } from '../../../http/audit.js';
import {
  type BodyFlow,
  type JsonRoute,
  JsonText,
  jsonRoute,
  type Method,
  type Pieces,
  Reply,
  type RouteContext,
  type RouteDescription,
} from '../../../http/route.js';
import type { VectorDeps } from '../deps.js';
import { namespaceParams } from '../schemas/names.js';
import type { VectorIndex } from '../vector-index.js';

/** Clients differ in the method that they send (the npm SDK posts everything, others read by GET): the path decides. */
const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'DELETE'];

const SUCCESS = new JsonText('{"result":"Success"}');

/** The reply of what has nothing to tell but that it is done. */
export async function successAfter(work: Promise<void>): Promise<JsonText> {
  await work;
  return SUCCESS;
}

/** @param json text, or pieces of one */
export function resultText(json: string | readonly string[]): JsonText {
  return new JsonText(typeof json === 'string' ? `{"result":${json}}` : ['{"result":', ...json, '}']);
}

/** Names of keys in a header; whatever else somebody sent is not repeated. */
const PLAIN_KEY = /^[\w.-]{1,40}$/;

/** Tells which keys of the request were passed over, if any. */
export function warned(
  reply: JsonText | Reply,
  ...requests: readonly { readonly ignored?: readonly string[] | undefined }[]
): JsonText | Reply {
  const ignored = new Set(requests.flatMap(({ ignored = [] }) => ignored));
  if (ignored.size === 0) return reply;
  const names = [...ignored].map((key) => (PLAIN_KEY.test(key) ? key : '?')).slice(0, 10);
  const headers = { 'Vector-Warning': `ignored: ${names.join(', ')}` };
  return reply instanceof Reply
    ? new Reply(reply.status, reply.body, { ...reply.headers, ...headers })
    : new Reply(200, reply, headers);
}

interface Schemas {
  body?: z.ZodType;
  query?: z.ZodType;
  headers?: z.ZodType;
}

type Part<S> = S extends z.ZodType ? z.output<S> : undefined;

interface Input<S extends Schemas> {
  readonly body: Part<S['body']>;
  readonly query: Part<S['query']>;
  readonly headers: Part<S['headers']>;
  /** Empty for the default namespace. */
  readonly namespace: string;
}

interface Definition<S extends Schemas, R extends z.ZodType> {
  readonly operationId: string;
  readonly summary: string;
  readonly path: string;
  /** It changes data, which a read-only token may not. */
  readonly writes?: boolean;
  readonly audit?: AuditKind;
  readonly request: S;
  readonly reply: R;
  readonly parseBody?: (body: Buffer) => unknown;
  /** Statuses beside 400, 403 and 422, for the documentation. */
  readonly errors?: readonly number[];
  readonly handle: (
    index: VectorIndex,
    input: Input<S>,
    context: RouteContext,
  ) => Promise<z.input<R> | JsonText | Reply | Pieces>;
  readonly besideJson?: RouteDescription['besideJson'];
  readonly isUndocumented?: boolean;
  readonly flow?: {
    readonly takes: BodyFlow<VectorDeps>['takes'];
    readonly handle: (
      index: VectorIndex,
      input: { readonly namespace: string; readonly body: AsyncIterable<Buffer> },
      context: RouteContext,
    ) => Promise<z.input<R> | JsonText>;
  };
}

const route = jsonRoute<VectorDeps>();

interface Given {
  readonly params?: { readonly namespace: string } | undefined;
}

function namespaceOf(input: unknown): string {
  return (input as Given).params?.namespace ?? '';
}

/** A route of the index as a whole. */
export function indexRoute<S extends Schemas, R extends z.ZodType>(
  definition: Definition<S, R>,
): JsonRoute<VectorDeps> {
  return routeOf(definition, definition.path, definition.request);
}

/** A route of a namespace. */
export function namespaceRoute<S extends Schemas, R extends z.ZodType>(
  definition: Definition<S, R>,
): JsonRoute<VectorDeps> {
  const path = `${definition.path}/*namespace`;
  return routeOf(definition, path, { params: namespaceParams, ...definition.request });
}

/** The same for the default namespace and for the one that follows in the path. */
export function bothRoutes<S extends Schemas, R extends z.ZodType>(
  definition: Definition<S, R>,
): JsonRoute<VectorDeps>[] {
  return [
    indexRoute(definition),
    namespaceRoute({
      ...definition,
      operationId: `${definition.operationId}InNamespace`,
      summary: `${definition.summary.replace(/\.$/, '')}, in a namespace.`,
    }),
  ];
}

function routeOf<S extends Schemas, R extends z.ZodType>(
  definition: Definition<S, R>,
  path: string,
  request: S & { params?: z.ZodType },
): JsonRoute<VectorDeps> {
  const { operationId, summary, reply, writes = false, errors = [], handle, flow } = definition;
  const { parseBody, besideJson, audit, isUndocumented = false } = definition;
  const enter = ({ index }: VectorDeps, { principal }: RouteContext): Promise<VectorIndex> =>
    index.ready(principal);
  return route({
    methods: METHODS,
    operationId,
    summary,
    path,
    request,
    reply,
    errors: [400, 403, 422, ...errors],
    changesData: writes,
    isUndocumented,
    isKeyed: writes,
    ...(besideJson === undefined ? {} : { besideJson }),
    ...(audit === undefined ? {} : { audit }),
    ...(parseBody === undefined ? {} : { parseBody }),
    ...(flow === undefined
      ? {}
      : {
          bodyFlow: {
            takes: flow.takes,
            handle: async (input, context, deps) =>
              flow.handle(await enter(deps, context), { ...input, namespace: namespaceOf(input) }, context),
          },
        }),
    handle: async (input, context, deps) =>
      handle(
        await enter(deps, context),
        { ...(input as unknown as Input<S>), namespace: namespaceOf(input) },
        context,
      ),
  });
}
