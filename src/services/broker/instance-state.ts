export interface InstanceName {
  readonly group: string;
  readonly instance: string;
}

/** One instance as others see it. */
export interface InstanceState {
  /** As Kafka knows it. */
  readonly group: string;
  readonly name: string;
  readonly topics: readonly { readonly topic: string; readonly partitions: number[] }[];
}

/** How long a request may wait for records. */
export interface Wait {
  readonly ms: number;
  /** Aborts when the time is over, or `gone` does. */
  readonly signal: AbortSignal;
  /** Aborts when nobody wants the records any more. */
  readonly gone: AbortSignal;
}
