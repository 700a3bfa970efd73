/** Shapes of the inner modules of kafkajs 2.2.4 that `kafkajs-internals.ts` imports; the package types only its public face. */

declare module 'kafkajs/src/network/connection.js' {
  namespace Connection {
    interface Protocol {
      request: unknown;
      response: { decode(payload: unknown): Promise<unknown>; parse(decoded: unknown): Promise<unknown> };
      requestTimeout?: number;
      logResponseError?: boolean;
    }
  }
  class Connection {
    constructor(options: {
      host: string;
      port: number;
      logger: unknown;
      socketFactory: unknown;
      clientId: string;
      connectionTimeout: number;
      requestTimeout: number;
      enforceRequestTimeout: boolean;
      maxInFlightRequests: number | null;
      ssl: object | null;
      sasl: object | null;
    });
    socket: import('node:net').Socket | undefined;
    requestQueue: { rejectAll(error: Error): void; destroy(): void };
    connect(): Promise<true>;
    disconnect(): Promise<true>;
    isConnected(): boolean;
    setVersions(versions: unknown): void;
    setSupportAuthenticationProtocol(isSupported: boolean): void;
    authenticate(): Promise<void>;
    send(protocol: Connection.Protocol): Promise<unknown>;
  }
  export = Connection;
}

declare module 'kafkajs/src/network/requestQueue/index.js' {
  class RequestQueue {
    pending: unknown[];
    throttledUntil: number;
    scheduleCheckPendingRequests(): void;
  }
  export = RequestQueue;
}

declare module 'kafkajs/src/network/socketFactory.js' {
  function createSocketFactory(): unknown;
  export = createSocketFactory;
}

declare module 'kafkajs/src/loggers/index.js' {
  const loggers: {
    createLogger(options: { level: number; logCreator: unknown }): unknown;
  };
  export = loggers;
}

declare module 'kafkajs/src/protocol/requests/index.js' {
  interface RequestDefinitions {
    versions: string[];
    protocol(options: {
      version: number;
    }): (args?: object) => import('kafkajs/src/network/connection.js').Protocol;
  }
  type Versions = Record<number, { minVersion: number; maxVersion: number }>;
  const protocol: {
    requests: Record<string, RequestDefinitions>;
    lookup(
      versions: Versions,
    ): (
      apiKey: number,
      definitions: RequestDefinitions,
    ) => (args: object) => import('kafkajs/src/network/connection.js').Protocol;
  };
  export = protocol;
}

declare module 'kafkajs/src/protocol/requests/apiKeys.js' {
  const apiKeys: Record<string, number>;
  export = apiKeys;
}

declare module 'kafkajs/src/protocol/error.js' {
  const errors: { createErrorFromCode(code: number): Error & { type: string; code: number } };
  export = errors;
}
