export interface VectorRecord {
  readonly id: string;
  readonly vector?: readonly number[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly data?: string;
  readonly score?: number;
}

export interface IndexInfo {
  readonly vectorCount: number;
  readonly pendingVectorCount: number;
  readonly indexSize: number;
  readonly dimension: number;
  readonly similarityFunction: string;
  readonly indexType: string;
  readonly denseIndex?: { readonly embeddingModel: string };
  readonly sparseIndex?: { readonly embeddingModel: string };
  readonly namespaces: Readonly<
    Record<string, { readonly vectorCount: number; readonly graph?: 'ready' | 'building' | 'none' }>
  >;
}
