import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { brokerUnderTest } from '../../support/broker/broker.js';
import { backendAddress } from '../../support/environment.js';
import { watchLoop } from '../../support/loop-watch.js';
import { TOKENS } from '../../support/tokens.js';

const MIB = 1024 * 1024;
/** The rule is 100 ms; what a collector does in this thread comes on top. What is found here took 350 ms and more. */
const STOP_MS = 300;
const LETTER = 'x'.charCodeAt(0);

const { kafka, url } = brokerUnderTest();

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** Java's frame of Snappy; every byte an element of its own. */
function snappyByteByByte(bytes: Buffer): Buffer {
  const parts: Buffer[] = [
    Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
  ];
  for (let at = 0; at < bytes.length; at += MIB) {
    const plain = bytes.subarray(at, at + MIB);
    const elements = Buffer.alloc(plain.length * 2);
    for (let i = 0; i < plain.length; i++) elements[i * 2 + 1] = plain[i] as number;
    const block = Buffer.concat([varint(plain.length), elements]);
    const size = Buffer.alloc(4);
    size.writeUInt32BE(block.length);
    parts.push(size, block);
  }
  return Buffer.concat(parts);
}

/** A letter, and four that repeat it. */
const SEQUENCE = Buffer.from([0x10, LETTER, 1, 0]);
const HEAD = 64;
const TAIL = 20;
const UNCOMPRESSED = 0x80000000;

/** A frame of LZ4 whose blocks are a head, letters in short sequences and a tail. */
function lz4InShortSequences(bytes: Buffer): Buffer {
  const parts: Buffer[] = [Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73])];
  for (let at = 0; at < bytes.length; at += MIB) {
    const plain = bytes.subarray(at, at + MIB);
    const size = Buffer.alloc(4);
    if (plain.length < 2 * HEAD) {
      size.writeUInt32LE(plain.length + UNCOMPRESSED);
      parts.push(size, plain);
      continue;
    }
    const count = Math.floor((plain.length - HEAD - 4 - TAIL) / 5);
    const rest = plain.subarray(HEAD + 4 + count * 5);
    const block = Buffer.concat([
      Buffer.from([0xf0, HEAD - 15]),
      plain.subarray(0, HEAD),
      Buffer.from([1, 0]),
      Buffer.alloc(count * SEQUENCE.length, SEQUENCE),
      Buffer.from([0xf0, rest.length - 15]),
      rest,
    ]);
    size.writeUInt32LE(block.length);
    parts.push(size, block);
  }
  return Buffer.concat([...parts, Buffer.alloc(4)]);
}

/** Writes records that are packed so, or as kafkajs packs them. */
async function write(
  topic: string,
  messages: kafkajs.Message[],
  compression: Exclude<kafkajs.CompressionTypes, kafkajs.CompressionTypes.None>,
  pack?: (bytes: Buffer) => Buffer,
): Promise<void> {
  const { CompressionCodecs, Kafka, logLevel } = kafkajs;
  if (pack !== undefined)
    CompressionCodecs[compression] = () => ({
      compress: async (encoder: { buffer: Buffer }) => pack(encoder.buffer),
      decompress: async () => Buffer.alloc(0),
    });
  const client = new Kafka({
    brokers: [backendAddress('PORTICO_KAFKA_BROKERS')],
    logLevel: logLevel.NOTHING,
  });
  const producer = client.producer();
  await producer.connect();
  try {
    await producer.send({ topic, compression, messages });
  } finally {
    await producer.disconnect();
  }
}

/** The bytes of a reply, counted as they come: this process has the gateway, too. */
async function sizeOf(path: string): Promise<{ status: number | undefined; bytes: number }> {
  const authorization = `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`;
  const headers = { authorization, 'Kafka-Auto-Offset-Reset': 'earliest' };
  const [reply] = (await once(get(`${url()}/broker${path}`, { headers }), 'response')) as [IncomingMessage];
  let bytes = 0;
  for await (const chunk of reply) bytes += (chunk as Buffer).length;
  return { status: reply.statusCode, bytes };
}

const { GZIP, Snappy, LZ4 } = kafkajs.CompressionTypes;
const letters = (count: number) => String.fromCharCode(LETTER).repeat(count);

test.each([
  ['snappy, byte by byte', Snappy, snappyByteByByte, letters(8 * MIB), 8 * MIB],
  ['lz4 in short sequences', LZ4, lz4InShortSequences, letters(16 * MIB), 16 * MIB],
  ['letters that JSON escapes', GZIP, undefined, '\u0001'.repeat(12 * MIB), 72 * MIB],
  ['bytes that are no UTF-8', GZIP, undefined, Buffer.alloc(12 * MIB, 0xff), 36 * MIB],
] as const)('%s: others are served meanwhile', async (name, codec, pack, value, expected) => {
  const topic = await kafka.topic(name.replace(/\W+/g, '-'), 1, { 'max.message.bytes': '40000000' });
  await write(topic, [{ value }], codec, pack);
  // what was made for the test is nobody's any more
  await sleep(500);
  const watch = watchLoop();
  const { status, bytes } = await sizeOf(
    `/consume/${kafka.name(name.replace(/\W+/g, '-'))}/i/${topic}?timeout=30000`,
  );
  const longestMs = watch.longestMs();
  watch.end();
  expect(status).toBe(200);
  expect(bytes).toBeGreaterThan(expected);
  expect(bytes).toBeLessThan(expected + 1_000);
  expect(longestMs).toBeLessThan(STOP_MS);
});
