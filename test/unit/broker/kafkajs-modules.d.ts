declare module 'kafkajs/src/protocol/decoder.js' {
  class Decoder {
    constructor(bytes: Buffer);
    offset: number;
    readInt8(): number;
    readInt16(): number;
    readInt32(): number;
    readInt64(): { toString(): string };
    readString(): string | null;
    readBytes(): Buffer | null;
    readArray<Item>(read: (decoder: Decoder) => Item): Item[];
  }
  export = Decoder;
}

declare module 'kafkajs/src/protocol/recordBatch/v0/decoder.js' {
  interface Decoded {
    records: { offset: string; timestamp: string; key: Buffer | null; value: Buffer | null }[];
  }
  function decode(decoder: unknown): Promise<Decoded>;
  export = decode;
}

declare module 'kafkajs/src/protocol/recordBatch/crc32C/index.js' {
  function crc32C(bytes: Buffer): number;
  export = crc32C;
}
