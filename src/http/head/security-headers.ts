import type { IncomingMessage, ServerResponse } from 'node:http';
import helmet from 'helmet';

/**
 * Helmet's headers for an API reply as a flat list of names and values. They do not depend on the request, so
 * helmet writes them once, into this list: as middleware it costs about a third of the requests per second.
 * @param crossOrigin pages of other origins may use the replies
 * @param sources what a page may load, by directive such as `scriptSrc`; nothing without
 */
export function securityHeaders(
  crossOrigin: boolean,
  sources: Readonly<Record<string, readonly string[]>> = {},
): readonly string[] {
  const headers: string[] = [];
  const recorder = {
    setHeader: (name: string, value: string) => headers.push(name, value),
    removeHeader: () => undefined,
  };
  const middleware = helmet({
    crossOriginResourcePolicy: { policy: crossOrigin ? 'cross-origin' : 'same-origin' },
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"], ...sources },
    },
  });
  let done = false;
  middleware({} as IncomingMessage, recorder as unknown as ServerResponse, (error?: unknown) => {
    if (error !== undefined) throw error;
    done = true;
  });
  if (!done) throw new Error('helmet did not finish synchronously');
  return headers;
}
