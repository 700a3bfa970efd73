import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code: number; readonly message: string };
  /** By key. */
  readonly attributes: Readonly<Record<string, string | boolean | number>>;
  /** Of the process that sent it. */
  readonly resource: Readonly<Record<string, string | boolean | number>>;
}

export interface Collector {
  readonly endpoint: string;
  readonly spans: readonly ReceivedSpan[];
  readonly headers: readonly IncomingHttpHeaders[];
  stop(): Promise<void>;
}

type Attribute = {
  readonly key: string;
  readonly value: Readonly<Record<string, string | boolean | number>>;
};

interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (ReceivedSpan & { attributes: Attribute[] })[];
    }[];
  }[];
}

const byKey = (attributes: readonly Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] ?? '']));

/** A collector of OTLP over HTTP, on loopback. @param status of its answers */
export async function startCollector(status = 200): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      headers.push(request.headers);
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as ExportRequest;
      for (const { resource, scopeSpans } of resourceSpans)
        for (const scope of scopeSpans)
          for (const span of scope.spans)
            spans.push({ ...span, attributes: byKey(span.attributes), resource: byKey(resource.attributes) });
      response.writeHead(status).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    headers,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
