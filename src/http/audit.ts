/** What was done: `destructive` removes much at once, `administrative` changes what others may do or how a backend works. */
export type AuditKind = 'destructive' | 'administrative';

/** One call, once it was answered. */
export interface AuditEntry {
  /** ISO 8601. */
  readonly at: string;
  readonly kind: AuditKind;
  /** Operation id. */
  readonly operation: string;
  /** Label of the credential: never the credential. */
  readonly who: string;
  /** Address of the peer. */
  readonly from: string | null;
  /** Names in the path, and a command's name. */
  readonly target: Readonly<Record<string, string>>;
  readonly status: number;
  readonly requestId: string;
}

/** Where entries go. */
export interface AuditSink {
  record(entry: AuditEntry): void;
}
