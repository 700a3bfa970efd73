/** Why no response came. `message` names no credential and may be shown to the sender. */
export class OutboundError extends Error {
  constructor(
    readonly reason: 'blocked' | 'timeout' | 'aborted' | 'network',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'OutboundError';
  }
}
