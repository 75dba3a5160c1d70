import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { nodeAead } from '../../../../infra/pool/agent/identity/aead.ts';
import type { Ticket } from '../../../../infra/pool/agent/request/ticket.ts';
import { readCheckpoint } from '../../../../infra/pool/agent/stream/checkpoint.ts';
import { serveStream } from '../../../../infra/pool/agent/stream/stream.ts';
import { createOpener, createSealer } from '../../../../shared/seal/records.ts';
import { encodings, type StreamFormat } from '../../../../shared/stream/format.ts';
import { type LinkControl, type LinkEvent, linkEvent } from '../../../../shared/stream/link.ts';
import { encodeAudio, encodeControl } from '../../../../shared/stream/link-record.ts';
import { settle } from '../../../fake/clock.ts';
import { createSequenceEngine } from '../../../fake/sequence-engine.ts';
import { FakeSocket } from '../../../fake/socket.ts';
import { openControl } from '../../../fake/stream-link.ts';
import { makeLiveParts } from '../../../fake/stream-session.ts';
import { runs } from '../../../seeds.ts';
import { liveModel } from './start-stream.ts';

/** Number of inputs; each stream draws its share, and streams run until all are used. */
const INPUTS = runs(1_800, 20_250);
const STREAMS = 50;
const key = new Uint8Array(64).fill(7);
const engine = createSequenceEngine();
const { live } = makeLiveParts(engine);
const bugs: unknown[] = [];
const context = {
  agent: 'agent-1',
  keepaliveMs: 5_000,
  live,
  log: (event: string, fields?: object) => void (event === 'bug' && bugs.push(fields)),
  onUtterance: () => {},
};
const ticket = { class: 'default', model: 'test-en', deadlineMs: 60_000 } as Ticket;

async function startLink() {
  const socket = new FakeSocket();
  const [sealer, opener, sender, reader] = await Promise.all([
    createSealer(key, 5, nodeAead),
    createOpener(key, 5, nodeAead),
    createSealer(key, 5, nodeAead),
    createOpener(key, 5, nodeAead),
  ]);
  const outcome = serveStream({
    context,
    ticket,
    model: { ...liveModel(), description: { ...liveModel().description, live: true } },
    sealer,
    opener,
    socket,
    stopped: new AbortController().signal,
    draining: new AbortController().signal,
  });
  return {
    socket,
    outcome,
    sender,
    async events(): Promise<LinkEvent[]> {
      const events: LinkEvent[] = [];
      for (const sent of socket.sent.splice(0)) {
        for await (const record of reader.open(sent)) {
          if (!record.ok) throw new Error(record.refusal.detail);
          events.push(linkEvent.parse(JSON.parse(new TextDecoder().decode(record.value.plaintext))));
        }
      }
      return events;
    },
  };
}

let inputs = 0;
const rejections: unknown[] = [];
const onRejection = (error: unknown) => rejections.push(error);
process.on('unhandledRejection', onRejection);
// Decoder packages print a line for each damaged frame; the agent's process is silent, too.
const printError = console.error;
console.error = () => {};
afterAll(() => {
  console.error = printError;
  process.off('unhandledRejection', onRejection);
});

const format = fc.record({
  encoding: fc.constantFrom(...encodings),
  rate: fc.constantFrom(8_000, 11_025, 16_000, 44_100, 48_000),
  channels: fc.constantFrom<1 | 2>(1, 2),
});
const options = fc.record({
  interim: fc.boolean(),
  endpointingMs: fc.oneof(fc.integer({ min: 10, max: 10_000 }), fc.constant<false>(false)),
  utteranceEndMs: fc.option(fc.integer({ min: 500, max: 10_000 }), { nil: undefined }),
});
/** Random states, and near-valid ones. */
const state = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.base64String({ maxLength: 5_000 }),
  fc
    .record({
      v: fc.constantFrom(1, 2),
      format: fc.constantFrom('linear16 16000 1', 'opus 48000 1'),
      missing: fc.maxSafeNat(),
      runFrame: fc.oneof(fc.nat(100_000), fc.maxSafeNat()),
      unit: fc.oneof(fc.nat(1_000), fc.maxSafeNat()),
      skip: fc.oneof(fc.nat(1_000), fc.maxSafeNat()),
      speaking: fc.boolean(),
      run: fc.nat(500),
      voiced: fc.array(fc.constantFrom('0', '1'), { maxLength: 420 }).map((flags) => flags.join('')),
      voice: fc.oneof(
        fc.uint8Array({ minLength: 709, maxLength: 709 }).map((bytes) => Buffer.from(bytes).toString('base64')),
        fc.string(),
      ),
      speechUnits: fc.nat(),
    })
    .map((value) => Buffer.from(JSON.stringify(value)).toString('base64')),
);
const from = fc.record({
  position: fc.oneof(fc.nat(100_000), fc.maxSafeNat()),
  time: fc.double({ min: 0, max: 1e6, noNaN: true }),
  index: fc.nat(),
  state,
});
const open = fc.record({ format, options, from: fc.option(from, { nil: undefined }) });

type Step =
  | { readonly type: 'audio'; readonly audio: Uint8Array; readonly off: number }
  | { readonly type: 'control'; readonly control: LinkControl; readonly final: boolean }
  | { readonly type: 'plain'; readonly plaintext: Uint8Array; readonly final: boolean };

const sound = fc.oneof(
  fc.uint8Array({ maxLength: 3_000 }),
  // Noise as loud as a voice.
  fc.nat(255).map((seed) => Uint8Array.from({ length: 6_400 }, (_, i) => (Math.imul(i, 2_654_435_761) >>> 24) ^ seed)),
);
const rarely = fc.integer({ min: 0, max: 30 }).map((n) => n === 0);
const position = fc.oneof({ weight: 20, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.maxSafeNat() });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ type: fc.constant('audio' as const), audio: sound, off: rarely.map(Number) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('control' as const),
      control: fc.oneof(
        fc.record({ type: fc.constant('finalize' as const), id: fc.nat(), position }),
        fc.record({ type: fc.constant('clear' as const), id: fc.nat(), position }),
        fc.record({ type: fc.constant('options' as const), options }),
      ) as fc.Arbitrary<LinkControl>,
      final: rarely,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('plain' as const),
      plaintext: fc.oneof(
        fc.uint8Array({ maxLength: 60 }),
        fc.json().map((text) => Buffer.from(`\0${text}`)),
      ),
      final: fc.boolean(),
    }),
  },
);

describe('fuzzing of the link', () => {
  it('any records end a stream at most with a refusal (20,000 inputs in CI)', async () => {
    const anyRecords = fc.asyncProperty(
      open,
      fc.array(step, { minLength: 4, maxLength: 24 }),
      fc.boolean(),
      async (opening, steps, ends) => {
        const { socket, outcome, sender, events } = await startLink();
        let at = opening.from?.position ?? 0;
        const deliver = async (plaintext: Uint8Array, final: boolean) => {
          inputs++;
          socket.hear(Buffer.from(await sender.seal(plaintext, final)));
        };
        await deliver(encodeControl(openControl(opening as { format: StreamFormat })), false);
        for (const one of steps) {
          if (one.type === 'audio') {
            await deliver(encodeAudio(at + one.off, one.audio), false);
            at += one.audio.length;
          } else if (one.type === 'plain') await deliver(one.plaintext, one.final);
          else {
            const { control } = one;
            const placed = 'position' in control && control.position < 0 ? { ...control, position: at } : control;
            await deliver(encodeControl(placed), one.final);
          }
          const last = one.type !== 'audio' && one.final;
          if (last) break;
        }
        for (let i = 0; i < 3; i++) await settle();
        if (!ends) socket.hear(Buffer.alloc(9, 0xff));
        await settle();
        socket.gone();
        await outcome;
        for (let i = 0; i < 3; i++) await settle();
        const said = await events();
        const reasons = said.flatMap((event) => (event.type === 'refusal' ? [event.reason] : []));
        expect(reasons).not.toContain('internal');
        // Nothing follows a refusal, and times never go back.
        if (reasons.length > 0) expect(said.at(-1)?.type).toBe('refusal');
        const times = said.flatMap((event) => (event.type === 'heard' ? [event.time] : []));
        expect(times).toEqual([...times].sort((a, b) => a - b));
      },
    );
    while (inputs < INPUTS) await fc.assert(anyRecords, { numRuns: STREAMS, endOnFailure: true });
    for (let i = 0; i < 100; i++) await settle();
    expect(bugs).toEqual([]);
    expect(rejections).toEqual([]);
    expect(engine.open.size).toBe(0);
  }, 240_000);

  it('unsealed bytes end it at once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 200 }), { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        async (chunks, text) => {
          const { socket, outcome } = await startLink();
          for (const chunk of chunks) socket.hear(Buffer.from(chunk), !text);
          socket.gone();
          const result = await outcome;
          expect(result.ok).toBe(false);
        },
      ),
      { numRuns: 2_000 },
    );
    expect(bugs).toEqual([]);
  }, 60_000);

  it('a state that another has written is read or left out', () => {
    fc.assert(
      fc.property(from, format, (checkpoint, wanted) => {
        const { hearing, origin, index } = readCheckpoint(checkpoint, wanted);
        expect(index).toBe(checkpoint.index);
        expect(origin.position).toBe(checkpoint.position);
        expect(hearing.cutter.run).toBeLessThanOrEqual(hearing.cutter.voiced.length);
        expect(Number.isSafeInteger(hearing.missing)).toBe(true);
      }),
      { numRuns: 5_000 },
    );
  });
});
