/** An abort whose signal is made when somebody asks for it: most requests end before anything would listen. */
export class LateAbort<Reason extends Error> {
  private controller: AbortController | undefined;
  private first: Reason | undefined;

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.first !== undefined) this.controller.abort(this.first);
    }
    return this.controller.signal;
  }

  /** Why it was aborted first. */
  get reason(): Reason | undefined {
    return this.first;
  }

  abort(reason: Reason): void {
    this.first ??= reason;
    this.controller?.abort(reason);
  }
}
