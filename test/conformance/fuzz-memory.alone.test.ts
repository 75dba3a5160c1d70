// Memory under random input: nothing is retained, and no promise rejects unobserved.
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auricleStream } from '../../edge/protocol/auricle-stream.ts';
import { Container } from '../../edge/protocol/deepgram-container.ts';
import { deepgramListen } from '../../edge/protocol/deepgram-listen.ts';
import type { LiveProtocol } from '../../edge/protocol/live-protocol.ts';
import { openaiRealtime } from '../../edge/protocol/openai-realtime.ts';
import { decodeLinkEvent } from '../../edge/stream/link-event.ts';
import type { Result } from '../../shared/result.ts';
import { createOpener } from '../../shared/seal/records.ts';
import { decodeLinkRecord } from '../../shared/stream/link-record.ts';
import { runs } from '../seeds.ts';

const NOW = 1_760_000_000_000;

/** Distinct inputs, repeated as fresh copies: whatever is retained of each adds up. */
const VARIETY = 500;
const ROUNDS = runs(4, 40);
/** Allowance for compilers and their counters; for each message less than a retained copy. */
const KEPT_BYTES_MAX = 2 ** 16 + 24 * VARIETY * ROUNDS;

/** Time for WebCrypto's jobs to release their memory, in milliseconds. */
const RELEASE_MS_MAX = 5_000;

const names = [
  ...['session.update', 'input_audio_buffer.append', 'input_audio_buffer.commit', 'input_audio_buffer.clear'],
  ...['KeepAlive', 'Finalize', 'Configure', 'finalize', 'clear', 'options', 'ping', 'start', 'heard', 'interim'],
];
const text = fc.oneof(
  fc.string({ maxLength: 400 }),
  fc.json({ maxDepth: 3 }),
  fc
    .record({ type: fc.constantFrom(...names), id: fc.nat(), audio: fc.base64String({ maxLength: 800 }) })
    .map((one) => JSON.stringify({ ...one, session: { audio: { input: { transcription: { model: one.audio } } } } })),
);
const bytes = fc.uint8Array({ maxLength: 1_000 });
const samples = {
  messages: fc.sample(fc.oneof(text, bytes), { numRuns: VARIETY, seed: 1 }),
  records: fc.sample(
    fc.oneof(
      bytes,
      text.map((one) => new Uint8Array(Buffer.from(one))),
      text.map((one) => new Uint8Array(Buffer.concat([Buffer.of(0), Buffer.from(one)]))),
    ),
    { numRuns: VARIETY, seed: 2 },
  ),
};

/** A fresh copy, as a socket delivers it: retaining it retains all of its memory. */
function copy<T extends string | Uint8Array>(one: T): T;
function copy(one: string | Uint8Array): string | Uint8Array {
  return typeof one === 'string' ? Buffer.from(one).toString() : one.slice();
}

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.refusal.reason);
  return result.value;
}

const protocol = (make: (url: URL, headers: Headers) => Result<LiveProtocol>, path: string) => {
  const made = unwrap(make(new URL(path, 'https://edge.test'), new Headers()));
  made.open({ id: 's', request: 'r', now: NOW, expires: NOW + 1 });
  made.begin?.(NOW);
  return () => {
    for (const one of samples.messages) made.receive(copy(one), NOW);
  };
};

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const loopTurn = promisify(setImmediate);
/** Bytes in use after a full collection. */
const heap = async () => {
  collect();
  await loopTurn();
  collect();
  return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
};

/**
 * Expects that rounds after the first two retain nothing. WebCrypto jobs release their memory in later turns
 * of the loop, much later on a busy machine, so the heap is read until it has fallen; retained memory never
 * falls.
 */
async function expectNothingRetained(round: () => unknown): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await round();
  const before = await heap();
  for (let turn = 0; turn < ROUNDS; turn++) await round();
  await expect.poll(async () => (await heap()) - before, { timeout: RELEASE_MS_MAX }).toBeLessThan(KEPT_BYTES_MAX);
}

let rejected = 0;
const note = () => {
  rejected += 1;
};
beforeAll(() => void process.on('unhandledRejection', note));
afterAll(() => void process.off('unhandledRejection', note));

describe('memory stays bounded under random client messages', () => {
  const parsers: Readonly<Record<string, () => () => unknown>> = {
    '/v1/stream': () => protocol(auricleStream, '/v1/stream'),
    '/v1/realtime': () => protocol(openaiRealtime, '/v1/realtime?model=m'),
    '/v1/listen': () => protocol(deepgramListen, '/v1/listen?model=m&encoding=linear16&sample_rate=8000'),
    '/v1/listen without an encoding': () => protocol(deepgramListen, '/v1/listen?model=m'),
    'the header of a file that never ends': () => {
      const container = new Container();
      container.push(new TextEncoder().encode('RIFF\0\0\0\0WAVELIST\0\0\0\x7f'));
      return () => {
        for (const one of samples.records) container.push(copy(one));
      };
    },
    'records of the edge and events of the agent': () => () => {
      for (const one of samples.records) {
        decodeLinkRecord(copy(one));
        decodeLinkEvent(copy(one));
      }
    },
    'sealed records that do not open': () => async () => {
      const opener = await createOpener(new Uint8Array(64).fill(7), 5);
      for (const one of samples.records) await opener.openWhole(copy(one));
    },
  };

  it.each(Object.entries(parsers))('%s', async (_, make) => {
    await expectNothingRetained(make());
    expect(rejected).toBe(0);
  });
});
