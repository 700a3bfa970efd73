import type { Request } from 'express';
import type { z } from 'zod';
import { checkInSlices } from '../../lib/bounded-list.js';
import { WHOLE_BYTES } from '../../lib/json/sliced-json.js';
import { parseJsonBody } from '../body.js';
import { HttpError } from '../errors.js';
import { type HeaderAlias, withContractNames } from '../headers.js';
import { queryParameters } from '../query.js';
import type { JsonRoute } from '../route.js';

type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>;

/**
 * What a JSON route's schemas make of its request. Apart from what waits for the handler: a large body must not stay in memory as long as that.
 * @returns a promise for a large body only
 */
export function inputOf(
  route: JsonRoute<undefined>,
  request: Request,
  body: Buffer,
  alias: HeaderAlias | undefined,
): never | Promise<never> {
  const schemas = route.request ?? {};
  const params = checked(schemas.params, 'path', () => request.params);
  const query = checked(schemas.query, 'query', () => queryOf(request.url));
  const headers = checked(schemas.headers, 'header', () => withContractNames(request.headers, alias));
  const rest = { params, query, headers };
  if (schemas.body === undefined) return { ...rest, body: undefined } as never;
  const parsed = (route.parseBody ?? parseJsonBody)(body);
  if (body.length > WHOLE_BYTES) return largeInput(schemas.body, parsed, rest);
  return { ...rest, body: checked(schemas.body, 'body', () => parsed) } as never;
}

/** What takes longer than other requests may wait is done in slices. */
async function largeInput(schema: z.ZodType, parsed: unknown, rest: object): Promise<never> {
  const value = await parsed;
  const outcome = await checkInSlices(schema, value);
  if (outcome === undefined) return { ...rest, body: checked(schema, 'body', () => value) } as never;
  if ('elements' in outcome) return { ...rest, body: outcome.elements } as never;
  throw new HttpError('invalid_request', describeIssues('body', [outcome.issue]));
}

function queryOf(url: string): Record<string, string> {
  return url.includes('?') ? Object.fromEntries(queryParameters(url)) : {};
}

/** @throws HttpError 400 that names the first places that do not fit */
export function checked(schema: z.ZodType | undefined, part: string, value: () => unknown): unknown {
  if (schema === undefined) return undefined;
  const result = schema.safeParse(value());
  if (result.success) return result.data;
  throw new HttpError('invalid_request', describeIssues(part, result.error.issues), { cause: result.error });
}

/** zod names every unknown key. */
const LONGEST_ISSUE = 500;

/** At most three issues, each as `body.topK: expected number`. */
function describeIssues(part: string, issues: readonly Issue[]): string {
  const shown = issues
    .slice(0, 3)
    .map((issue) => `${[part, ...issue.path].map(String).join('.')}: ${issue.message}`)
    .map((text) => (text.length > LONGEST_ISSUE ? `${text.slice(0, LONGEST_ISSUE)} …` : text));
  if (issues.length > 3) shown.push(`and ${issues.length - 3} more`);
  return shown.join('; ');
}
