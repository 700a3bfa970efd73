import fc from 'fast-check';
import Decoder from 'kafkajs/src/protocol/decoder.js';
import { WireReader, WireWriter } from '../../../src/services/broker/kafka/wire.js';

/** What Kafka would read, by kafkajs' own decoder. */
const topicsOf = (request: Buffer) =>
  new Decoder(request).readArray((decoder: Decoder) => ({
    name: decoder.readString(),
    partition: decoder.readInt32(),
  }));

it('writes any number of topics with names of any length as Kafka reads them', () => {
  for (let length = 1; length <= 249; length += 1) {
    const topics = Array.from({ length: 1 + ((length * 37) % 200) }, (_, partition) => ({
      name: `${partition}`.padEnd(length, 'x').slice(0, length),
      partition,
    }));
    const writer = new WireWriter();
    writer.array(topics, ({ name, partition }) => writer.string(name).int32(partition));
    expect(topicsOf(writer.finish())).toEqual(topics);
  }
});

const value = fc.oneof(
  fc.record({ kind: fc.constant('int8' as const), value: fc.integer({ min: -128, max: 127 }) }),
  fc.record({ kind: fc.constant('int16' as const), value: fc.integer({ min: -32_768, max: 32_767 }) }),
  fc.record({ kind: fc.constant('int32' as const), value: fc.integer() }),
  fc.record({ kind: fc.constant('int64' as const), value: fc.maxSafeInteger() }),
  fc.record({
    kind: fc.constant('string' as const),
    value: fc.string({ unit: 'grapheme', maxLength: 3_000, size: 'max' }),
  }),
  fc.record({ kind: fc.constant('null' as const), value: fc.constant(null) }),
  fc.record({
    kind: fc.constant('bytes' as const),
    value: fc.uint8Array({ maxLength: 6_000 }).map((bytes) => Buffer.from(bytes)),
  }),
);

type Value = typeof value extends fc.Arbitrary<infer T> ? T : never;

function write(writer: WireWriter, { kind, value: what }: Value): void {
  if (kind === 'null') writer.string(null);
  else if (kind === 'string') writer.string(what);
  else if (kind === 'bytes') writer.bytes(what);
  else writer[kind](what);
}

function read(decoder: Decoder, kind: Value['kind']): unknown {
  if (kind === 'int8') return decoder.readInt8();
  if (kind === 'int16') return decoder.readInt16();
  if (kind === 'int32') return decoder.readInt32();
  if (kind === 'int64') return Number(decoder.readInt64());
  if (kind === 'bytes') return decoder.readBytes();
  return decoder.readString();
}

it('writes any sequence of values as kafkajs reads them, and nothing else', () => {
  fc.assert(
    fc.property(fc.array(value, { maxLength: 60 }), (values) => {
      const writer = new WireWriter();
      for (const one of values) write(writer, one);
      const bytes = writer.finish();
      const decoder = new Decoder(bytes);
      expect(values.map(({ kind }) => read(decoder, kind))).toEqual(values.map((one) => one.value));
      expect(decoder.offset).toBe(bytes.length);
    }),
    { numRuns: 300, endOnFailure: true },
  );
});

it('reads its own strings and bytes back', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 2_000 }), { maxLength: 30 }), (strings) => {
      const writer = new WireWriter();
      writer.array(strings, (one) => writer.string(one));
      const reader = new WireReader(writer.finish());
      expect(reader.array(() => reader.string())).toEqual(strings);
    }),
  );
});
