/** Where a stream's handler puts what goes to the client. */
export interface StreamSink {
  /**
   * Sends `chunk` after what came before; without effect once the stream is over. A client that leaves more than
   * `http.streamBufferBytes` of earlier chunks unread is cut off instead.
   */
  write(chunk: string | Buffer): void;
  /** Ends the reply after what was written. */
  end(): void;
  /** Nothing more is sent: it was ended or cut, or the client left. */
  readonly isOver: boolean;
  /** Calls `listener` once when the connection is done with the stream, whatever ended it; at once when it is already. */
  onClose(listener: () => void): void;
}

/**
 * A raw route's answer that goes on until the client leaves, the handler ends it or the gateway stops. Its head goes out at
 * once; from then there is no deadline. It does not count as a request in flight: the service bounds how many it opens.
 * What a handler acquires before it returns must be given back by `RouteContext.onOver`, because `open` is not called for
 * HEAD, for a client that has left meanwhile and when the gateway is stopping (503).
 */
export interface RawStream {
  readonly status: number;
  readonly contentType: string;
  /** Beside `Cache-Control: no-cache` and those of every reply. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `text` is sent whenever nothing else was for `everyMs` (exact to 200 ms): proxies drop connections that are silent. */
  readonly heartbeat?: { readonly everyMs: number; readonly text: string };
  /** Called once, when the head is on its way. What it throws cuts the connection. */
  open(sink: StreamSink): void;
}
