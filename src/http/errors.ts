/** Every error that Portico mints: HTTP status and the message used when the place that throws has none better. */
export const ERRORS = {
  invalid_request: [400, 'The request is not valid.'],
  invalid_json: [400, 'The body is not valid JSON.'],
  unauthorized: [401, 'Missing or wrong credentials.'],
  forbidden: [403, 'These credentials may not do this.'],
  not_found: [404, 'There is nothing at this path.'],
  method_not_allowed: [405, 'This path does not take this method.'],
  request_timeout: [408, 'The request did not arrive in time.'],
  conflict: [409, 'The request does not fit the present state.'],
  limit_reached: [412, 'A configured limit is reached.'],
  not_served: [412, 'This gateway does not serve that.'],
  payload_too_large: [413, 'The request is too large.'],
  unsupported_encoding: [415, 'The content coding of the body is not one that is taken.'],
  expectation_failed: [417, 'Only the expectation 100-continue can be met.'],
  unprocessable: [422, 'The request cannot be processed.'],
  too_many_requests: [429, 'Too many requests.'],
  headers_too_large: [431, 'The request line and headers are too large.'],
  client_gone: [499, 'The client went away before the answer.'],
  internal: [500, 'Something went wrong inside the gateway.'],
  backend_error: [502, 'The backend answered with an unexpected error.'],
  outcome_unknown: [502, 'The connection to the backend broke before its reply: the outcome is unknown.'],
  reply_dropped: [
    502,
    'The request was carried out; its reply was dropped, because too many bytes of replies wait for their clients.',
  ],
  backend_unavailable: [503, 'The backend of this service is not available.'],
  overloaded: [503, 'The gateway has too many requests in flight.'],
  stopping: [503, 'The gateway is stopping.'],
  timeout: [504, 'The backend did not answer in time.'],
} as const satisfies Record<string, readonly [number, string]>;

export type ErrorCode = keyof typeof ERRORS;

export interface HttpErrorOptions {
  /** What led here, for the log; never sent. */
  cause?: unknown;
  /** Seconds for `Retry-After`; 503 gets 1 by default. */
  retryAfter?: number;
  /** Further reply headers, such as `Allow`. */
  headers?: Record<string, string>;
}

/** An error whose message is meant for the client. Driver text belongs into `cause`. */
export class HttpError extends Error {
  readonly status: number;
  /** It is known that nothing was done; see `Idempotency`. */
  hasDoneNothing = false;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    readonly code: ErrorCode,
    message: string = ERRORS[code][1],
    options: HttpErrorOptions = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'HttpError';
    this.status = ERRORS[code][0];
    const retryAfter = options.retryAfter ?? (this.status === 503 ? 1 : undefined);
    this.headers =
      retryAfter === undefined
        ? (options.headers ?? {})
        : { ...options.headers, 'Retry-After': String(Math.max(1, Math.ceil(retryAfter))) };
  }
}

/** The rest of the body stands in the way of a next request. */
const CLOSING = { headers: { Connection: 'close' } };

export const brokenBody = () => new HttpError('invalid_request', 'The body is malformed.', CLOSING);

export const lateBody = () => new HttpError('request_timeout', 'The body did not arrive in time.', CLOSING);

const NO_ROOM =
  'Too many bytes of replies wait for their clients; this one was not sent and can be asked for again.';

export function noRoomForReply(hasChangedData: boolean): HttpError {
  return hasChangedData ? new HttpError('reply_dropped') : new HttpError('overloaded', NO_ROOM);
}

/** Whatever was thrown, as an HttpError: its own, or `internal` with the original as cause and none of its text. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  return new HttpError('internal', undefined, { cause: error });
}

/** What Express throws when it cannot route a request: a path that cannot be decoded is the client's mistake. */
export function routingError(error: unknown): HttpError {
  const { status } = error as { status?: unknown };
  return status === 400 ? badPath(error) : toHttpError(error);
}

/** A path with a percent sign that begins no character. */
export function badPath(cause: unknown): HttpError {
  return new HttpError('invalid_request', 'The path is not valid.', { cause });
}
