import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Logger } from '../lib/logger.js';
import type { AuditKind } from './audit.js';
import type { HttpError } from './errors.js';
import type { RawStream } from './raw-stream.js';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Who a request's credentials belong to. */
export interface Principal {
  /** As shown in logs: a label, never the credential. */
  readonly name: string;
  /** `read`: routes that change data are refused; of a route that takes any command, the service decides. */
  readonly access: 'full' | 'read';
  /** The same in all requests of the same holder, where the object is not. */
  readonly key?: string;
  /** What a token made at run time is restricted to, as its service describes it. */
  readonly permissions?: Readonly<Record<string, unknown>>;
  /** Asked before each request. */
  readonly limits?: RequestLimits;
}

/** What one more request comes to. */
export interface Allowance {
  /** Why it is not let in. */
  readonly refusal: HttpError | undefined;
  /** Reply headers that tell what is left. */
  readonly headers: Readonly<Record<string, string>>;
}

/** How many requests somebody may send. */
export interface RequestLimits {
  take(): Promise<Allowance>;
}

/**
 * Whose a token is that was made at run time.
 * @param username where the credentials have one
 * @throws HttpError 503 while that cannot be told, 403 where the token is for something else
 */
export type IssuedLookup = (secret: string, username: string | undefined) => Principal | undefined;

/** How requests to one mounted instance prove who they are; checked before the body is read. */
export type AuthScheme = (BearerScheme | BasicScheme) & {
  /** For what none of `credentials` is. */
  readonly issued?: IssuedLookup;
};

interface BearerScheme {
  readonly kind: 'bearer';
  readonly credentials: readonly { readonly token: string; readonly principal: Principal }[];
  /** Whose token it is that is none of `credentials`: for tokens that prove themselves, such as sealed ones. */
  readonly resolve?: (token: string) => Principal | undefined;
  /** Query parameter that may carry the token instead of the header, and then wins. */
  readonly queryKey?: string;
  /** The header may hold the token without the word `Bearer`. */
  readonly bareToken?: boolean;
}

interface BasicScheme {
  readonly kind: 'basic';
  readonly credentials: readonly {
    readonly username: string;
    readonly password: string;
    readonly principal: Principal;
  }[];
  /** Query parameters that may carry the credentials, on the given paths only. */
  readonly queryKeys?: {
    readonly username: string;
    readonly password: string;
    readonly paths: readonly string[];
  };
}

/** What a handler knows of its request beside the input. */
export interface RouteContext {
  readonly requestId: string;
  readonly principal: Principal;
  /** Of the peer; behind a proxy of `http.trustedProxies`, what that says. */
  readonly clientAddress: string | null;
  /** Aborts when the client goes away or the deadline passes; hand it to everything that waits. */
  readonly signal: AbortSignal;
  /** Nobody waits for the reply any more. Costs nothing, where the first look at `signal` makes it. */
  readonly isOver: boolean;
  /** Aborts when the gateway begins to stop: what only waits for something to happen answers with what it has. */
  readonly stopping: AbortSignal;
  readonly log: Logger;
  /**
   * Calls `listener` once when the exchange is over: `true` when the handler's own reply went out completely, `false`
   * when the client left, an error was sent instead, or the reply had no body (HEAD). Of a stream: `true` when it was
   * ended and its last byte went out.
   * @param onReset called when the client, after `true`, resets the connection before it sends anything more, within
   * 10 s: it may not have read the reply
   */
  onOver(listener: (sent: boolean) => void, onReset?: () => void): void;
  /** From now the request must be answered within `timeoutMs` (504), whatever deadline it had; for a wait that it asks for. */
  limitTo(timeoutMs: number): void;
  /** The request belongs into the audit log, with what became of it. @param target names, never values */
  audit(kind: AuditKind, target: Readonly<Record<string, string>>): void;
}

/** A body or reply that is no JSON document, for the documentation. */
export interface TextForm {
  readonly contentType: string;
  /** What it holds. */
  readonly description: string;
}

/** What the documentation (OpenAPI) and the metrics need of every route. */
export interface RouteDescription {
  /** `service.operation`, such as `vector.upsert`: the label in metrics and the id in OpenAPI. */
  readonly operationId: string;
  readonly summary: string;
  readonly methods: readonly Method[];
  /** It changes data by any of its methods: 403 with a token that may only read. HEAD, which may change nothing, is then not served where GET is. */
  readonly changesData?: boolean;
  /** Whether a token that may only read may call it, where `changesData` does not decide. */
  readonly isForReaders?: boolean;
  /** Its body stays as it was packed (Content-Encoding), for somebody else to unpack. */
  readonly keepsEncoding?: boolean;
  /** Its calls belong into the audit log, with the names in their path. */
  readonly audit?: AuditKind;
  /** With the header `Idempotency-Key` it is done once at most. */
  readonly isKeyed?: boolean;
  /** It asks for no credentials: whoever knows the path may call it. All routes of its path must. */
  readonly isOpen?: boolean;
  /** Below the mount: words and parameters, or words and a rest: `/consume/:group/:instance`, `/upsert/*namespace`. */
  readonly path: string;
  /** The method that the documentation shows, where the rule (`documentedMethod`) would choose another. */
  readonly documentedMethod?: Method;
  /** What it does is shown by another route, or nobody should call it. */
  readonly isUndocumented?: boolean;
  /** Path for the documentation where `path` does not show it: of a route that takes everything below a prefix. */
  readonly documentedPath?: string;
  readonly request?: {
    readonly params?: z.ZodType;
    readonly query?: z.ZodType;
    readonly headers?: z.ZodType;
    readonly body?: z.ZodType;
  };
  /** Schema of the body of a success. */
  readonly reply: z.ZodType;
  /** Status of a success; 200 without one. For the documentation. */
  readonly replyStatus?: 200 | 201;
  /** Bodies that are taken and replies that are sent beside JSON, where the request's headers ask for them. */
  readonly besideJson?: { readonly body?: TextForm; readonly reply?: TextForm };
  /** Content type of a 200 that is not JSON, such as `text/event-stream`, for the documentation. */
  readonly replyType?: string;
  /** Statuses of refusals and failures that a caller should expect, for the documentation. */
  readonly errors?: readonly number[];
}

/** One call of an operation, as the documentation shows it. */
export interface OperationExample {
  readonly query?: Readonly<Record<string, unknown>>;
  /** By their names in the schema, in lower case. */
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly reply: unknown;
}

/** What the documentation tells of a service beside its routes. */
export interface ServiceDocumentation {
  readonly about: string;
  /** Of parameters of paths, by their names. */
  readonly names: Readonly<Record<string, string>>;
  /** By operation id; one of a namespace is shown as the one beside it. */
  readonly examples: Readonly<Record<string, OperationExample>>;
}

/**
 * JSON text that is already serialised, such as rows that the database printed as JSON. Sent as it is; several texts are sent
 * one behind the other.
 */
export class JsonText {
  constructor(readonly text: string | Buffer | readonly string[]) {}
}

/** A reply whose status or headers are not the usual ones (200, JSON). */
export class Reply {
  constructor(
    readonly status: number,
    /** `JsonText` is sent as it is. */
    readonly body: unknown,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}
}

/** A reply of any length, written piece by piece as its reader takes it. What fails after the first piece cuts the connection. */
export class Pieces {
  constructor(
    readonly contentType: string,
    readonly pieces: AsyncIterable<string>,
  ) {}
}

type OutputOf<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

interface RequestSchemas {
  params?: z.ZodType;
  query?: z.ZodType;
  headers?: z.ZodType;
  body?: z.ZodType;
}

/** A handler's input: each part is what its schema made of the request; parts without a schema are `undefined`. */
export interface RouteInput<S extends RequestSchemas> {
  readonly params: OutputOf<S['params']>;
  readonly query: OutputOf<S['query']>;
  /** Header names in lower case; `Upstash-*` appears as `service-*`, `Kafka-*` as `broker-*` (see `headers.ts`). */
  readonly headers: OutputOf<S['headers']>;
  readonly body: OutputOf<S['body']>;
}

/** How a route takes a body of any length instead of a JSON one, where a request's headers ask for it. */
export interface BodyFlow<Deps> {
  takes(headers: IncomingHttpHeaders): boolean;
  /** `body` is read as fast as it is consumed; each piece that arrives, and the end, begins the request's deadline anew. */
  readonly handle: (
    input: { readonly params: never; readonly body: AsyncIterable<Buffer> },
    context: RouteContext,
    deps: Deps,
  ) => Promise<unknown>;
}

/** A route with typed JSON in and out. The body is parsed as JSON whatever its content type, on every method. */
export interface JsonRoute<Deps> extends RouteDescription {
  readonly kind: 'json';
  /** Deadline in ms for this input; the instance's default otherwise. */
  readonly timeoutMs?: (input: never) => number;
  /** Reads the body where it need not be JSON; a promise for a large one, which is read in slices. */
  readonly parseBody?: (body: Buffer) => unknown;
  /** Takes bodies of any length beside JSON. */
  readonly bodyFlow?: BodyFlow<Deps>;
  readonly handle: (input: never, context: RouteContext, deps: Deps) => Promise<unknown>;
}

/** A request as it came, for services whose paths and bodies are not JSON over fixed paths. */
export interface RawRequest {
  readonly method: string;
  /** Path and query below the mount (and below the path of a `prefix` route), exactly as sent (percent-encoding, order and all), starting with `/`. */
  readonly target: string;
  /** The same with everything above it, as it was sent. */
  readonly originalTarget: string;
  readonly headers: IncomingHttpHeaders;
  /** Empty when there was none. */
  readonly body: Buffer;
}

/** A raw route's answer; `body` is complete and in the given content type (JSON by default). */
export interface RawReply {
  readonly status: number;
  readonly body: string | Buffer;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The request has changed data: its reply cannot be had again by asking again. */
  readonly hasChangedData?: boolean;
}

/** A route that gets the request's bytes. With `prefix`, it takes everything below its path. */
export interface RawRoute<Deps> extends RouteDescription {
  readonly kind: 'raw';
  readonly prefix?: boolean;
  readonly handle: (
    request: RawRequest,
    context: RouteContext,
    deps: Deps,
  ) => Promise<RawReply | RawStream | Pieces>;
}

export type Route<Deps> = JsonRoute<Deps> | RawRoute<Deps>;

/** A route whose `deps` are already given: what the HTTP core mounts. */
export type BoundRoute = Route<undefined>;

/**
 * Declares a JSON route of a service; the types of `input` and of the returned value come from the schemas.
 * `const route = jsonRoute<Deps>(); export const upsert = route({ operationId: 'vector.upsert', ... })`
 */
export function jsonRoute<Deps>() {
  return <S extends RequestSchemas, R extends z.ZodType>(
    definition: Omit<RouteDescription, 'request' | 'reply'> & {
      request: S;
      reply: R;
      timeoutMs?: (input: RouteInput<S>) => number;
      parseBody?: (body: Buffer) => unknown;
      bodyFlow?: BodyFlow<Deps>;
      handle: (
        input: RouteInput<S>,
        context: RouteContext,
        deps: Deps,
      ) => Promise<z.input<R> | JsonText | Reply | Pieces>;
    },
  ): JsonRoute<Deps> => ({ ...definition, kind: 'json' }) as JsonRoute<Deps>;
}

/** Gives every route its service's deps. */
export function bindRoutes<Deps>(routes: readonly Route<Deps>[], deps: Deps): BoundRoute[] {
  return routes.map((route) => ({
    ...route,
    handle: (input: never, context: RouteContext) => route.handle(input, context, deps),
    ...(route.kind === 'json' && route.bodyFlow !== undefined
      ? { bodyFlow: boundFlow(route.bodyFlow, deps) }
      : {}),
  })) as BoundRoute[];
}

function boundFlow<Deps>(flow: BodyFlow<Deps>, deps: Deps): BodyFlow<undefined> {
  return { takes: flow.takes, handle: (input, context) => flow.handle(input, context, deps) };
}

/** How one contract words its errors: the JSON body for an error with this status. */
export type ErrorFormat = (error: HttpError) => unknown;
