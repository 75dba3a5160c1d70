import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Container, WAV_HEADER_BYTES } from '../../edge/protocol/deepgram-container.ts';
import { deepgramListen } from '../../edge/protocol/deepgram-listen.ts';
import type { ClientCommand, LiveProtocol, SessionEvent } from '../../edge/protocol/live-protocol.ts';
import { openaiRealtime } from '../../edge/protocol/openai-realtime.ts';
import { defaultConfig, updateConfig } from '../../edge/protocol/openai-realtime-session.ts';
import { isReason } from '../../shared/refusal.ts';
import { append, type Frame, PREFIX, parse, segment, talk } from '../edge/protocol/openai-session.ts';
import { runs } from '../seeds.ts';

const NOW = 1_760_000_000_000;
const session = { id: 'fuzz', request: 'r', now: NOW, expires: NOW + 1 };

/** Half of the inputs are nearly right: known names with wrong values. */
const names = [
  ...['type', 'session', 'audio', 'input', 'format', 'rate', 'transcription', 'model', 'language', 'turn_detection'],
  ...['event_id', 'features', 'endpointing', 'include', 'session.update', 'input_audio_buffer.append'],
  ...['input_audio_buffer.commit', 'input_audio_buffer.clear', 'transcription_session.update', 'server_vad'],
  ...['KeepAlive', 'Finalize', 'CloseStream', 'Configure', '__proto__', 'constructor', 'audio/pcm', 'AAAA'],
];
const key = fc.oneof(fc.constantFrom(...names), fc.string({ maxLength: 8 }));
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(...names),
    fc.jsonValue({ maxDepth: 1 }),
    fc.dictionary(key, tie('any'), { maxKeys: 5 }),
    fc.array(tie('any'), { maxLength: 3 }),
  ),
})).any;
const message = fc.oneof(
  fc.string(),
  fc.uint8Array({ maxLength: 64 }),
  fc
    .record({ type: fc.constantFrom(...names), session: value, audio: value, features: value })
    .map((one) => JSON.stringify(one)),
  value.map((one) => JSON.stringify(one)),
);

const kinds = new Set([
  ...['start', 'continue', 'audio', 'options', 'finalize', 'clear'],
  ...['alive', 'end', 'route', 'reply', 'close'],
]);

function checkSteps(steps: readonly ClientCommand[]): void {
  for (const step of steps) {
    if (!kinds.has(step.type)) throw new Error(step.type);
    if (step.type === 'reply') for (const frame of step.frames) JSON.parse(String(frame));
    if (step.type === 'close' && !isReason(step.refusal.reason)) throw new Error('no reason');
  }
}

/** Feeds random inputs; each answer must be a known one. */
function bombard(make: () => LiveProtocol): void {
  const messages = fc.array(message, { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(messages, (all) => {
      const protocol = make();
      protocol.open(session);
      checkSteps(protocol.begin?.(NOW) ?? []);
      for (const one of all) checkSteps(protocol.receive(one, NOW));
    }),
    { numRuns: runs(400, 6_000) },
  );
}

function unwrap<T>(result: { ok: true; value: T } | { ok: false }): T {
  if (!result.ok) throw new Error('refused');
  return result.value;
}

describe('fuzzing: with SEEDS=10000 about 60,000 messages for each protocol', () => {
  it('OpenAI', () =>
    bombard(() => unwrap(openaiRealtime(new URL('https://e.test/v1/realtime?model=m'), new Headers()))));

  it('Deepgram', () =>
    bombard(() =>
      unwrap(deepgramListen(new URL('https://e.test/v1/listen?model=m&encoding=linear16&sample_rate=8000'))),
    ));

  it('Deepgram with audio in a container', () =>
    bombard(() => unwrap(deepgramListen(new URL('https://e.test/v1/listen?model=m')))));

  it('configurations: accepted whole, or refused and named', () => {
    fc.assert(
      fc.property(value, (one) => {
        const updated = updateConfig(defaultConfig, one);
        if (updated.ok) expect(updateConfig(defaultConfig, one)).toEqual(updated);
        else expect(['field_invalid', 'field_missing']).toContain(updated.refusal.reason);
      }),
      { numRuns: runs(1_000, 20_000) },
    );
  });

  it('addresses', () => {
    const parameters = [
      'model',
      'encoding',
      'sample_rate',
      'channels',
      'endpointing',
      'language',
      'redact',
      'multichannel',
    ];
    const pair = fc.tuple(
      fc.oneof(fc.constantFrom(...parameters), fc.string()),
      fc.oneof(fc.string(), fc.nat().map(String)),
    );
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 8 }), (pairs) => {
        const query = new URLSearchParams([['model', 'm'], ...pairs]);
        const made = deepgramListen(new URL(`https://e.test/v1/listen?${query}`));
        if (!made.ok) expect(['field_invalid', 'field_missing']).toContain(made.refusal.reason);
      }),
      { numRuns: runs(1_000, 20_000) },
    );
  });

  it('containers: bounded memory, and the same sound however it is cut', () => {
    const tag = fc.constantFrom(
      'RIFF',
      'WAVE',
      'fmt ',
      'data',
      'LIST',
      'OggS',
      'OpusHead',
      'fLaC',
      '\x10\0\0\0',
      '\x01\0\x01\0',
    );
    const bytes = fc
      .array(
        fc.oneof(
          tag.map((text) => Buffer.from(text, 'latin1')),
          fc.uint8Array({ maxLength: 24 }),
        ),
        { maxLength: 12 },
      )
      .map((parts) => new Uint8Array(Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE', 'latin1'), ...parts])));
    const read = (pieces: readonly Uint8Array[]) => {
      const container = new Container();
      const sound: number[] = [];
      for (const piece of pieces) {
        const taken = container.push(piece);
        if (!taken.ok) return taken.refusal.reason;
        sound.push(...(taken.value?.audio ?? []));
      }
      return sound;
    };
    fc.assert(
      fc.property(bytes, fc.integer({ min: 1, max: 40 }), (all, size) => {
        const pieces: Uint8Array[] = [];
        for (let at = 0; at < all.length; at += size) pieces.push(all.subarray(at, at + size));
        expect(read(pieces)).toEqual(read([all]));
        expect(all.length).toBeLessThan(WAV_HEADER_BYTES);
      }),
      { numRuns: runs(1_000, 20_000) },
    );
  });
});

/** A step of a session, in any order. */
type Act =
  | { readonly act: 'speak'; readonly words: number; readonly shown: readonly number[]; readonly heard: boolean }
  | { readonly act: 'noise' }
  | { readonly act: 'commit' }
  | { readonly act: 'clear' }
  | { readonly act: 'turns'; readonly on: boolean }
  | { readonly act: 'answer' };

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    act: fc.constant('speak' as const),
    words: fc.integer({ min: 1, max: 5 }),
    shown: fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 4 }),
    heard: fc.boolean(),
  }),
  fc.constant({ act: 'noise' as const }),
  fc.constant({ act: 'commit' as const }),
  fc.constant({ act: 'clear' as const }),
  fc.record({ act: fc.constant('turns' as const), on: fc.boolean() }),
  fc.constant({ act: 'answer' as const }),
);

describe('C10 random sessions of OpenAI', () => {
  it('every item has its events once, in order, with deltas equal to its transcript', () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
        const all = talk();
        const asked: { type: 'finalized' | 'cleared'; id: number }[] = [];
        let time = 0;
        const answer = () => {
          const next = asked.shift();
          if (next) all.tell(next);
        };
        const send = (event: object) => {
          const before = all.steps.length;
          all.send(event);
          for (const step of all.steps.slice(before)) {
            if (step.type === 'finalize') asked.push({ type: 'finalized', id: step.id });
            if (step.type === 'clear') asked.push({ type: 'cleared', id: step.id });
          }
        };
        for (const one of acts) {
          send(append(200));
          if (one.act === 'commit' || one.act === 'clear') send({ type: `input_audio_buffer.${one.act}` });
          if (one.act === 'turns') {
            const turn_detection = one.on ? { type: 'server_vad' } : null;
            send({ type: 'session.update', session: { audio: { input: { turn_detection } } } });
          }
          if (one.act === 'answer') answer();
          if (one.act === 'noise') {
            all.tell({ type: 'speech_started', at: time }, { type: 'speech_ended', at: time + 0.2 });
            time += 0.5;
          }
          if (one.act === 'speak') speak(all, one, time);
          if (one.act === 'speak') time += 2;
        }
        while (asked.length > 0) answer();
        all.frames.push(...parse(all.protocol.commit?.(time, NOW) ?? []));
        checkItems(all.frames);
      }),
      { numRuns: runs(300, 5_000) },
    );
  });
});

function speak(
  all: ReturnType<typeof talk>,
  { words, shown, heard }: Extract<Act, { act: 'speak' }>,
  at: number,
): void {
  const text = ['one', 'two', 'three', 'four', 'five'].slice(0, words).join(' ');
  const said = segment(text, at) as Extract<SessionEvent, { type: 'segment' }>;
  if (heard) all.tell({ type: 'speech_started', at });
  for (const stable of shown) {
    const guess = { ...said, type: 'interim' as const, stable: Math.min(stable, words) };
    all.tell(guess);
  }
  if (heard) all.tell({ type: 'speech_ended', at: at + 1 });
  all.tell(said);
}

const ORDER = [
  'input_audio_buffer.speech_started',
  'input_audio_buffer.speech_stopped',
  'input_audio_buffer.committed',
  'conversation.item.added',
  'conversation.item.done',
  `${PREFIX}.completed`,
];

function checkItems(frames: readonly Frame[]): void {
  const items = new Map<string, Frame[]>();
  for (const frame of frames) {
    const id = (frame.item_id ?? (frame.item as { id: string } | undefined)?.id) as string | undefined;
    if (id !== undefined) items.set(id, [...(items.get(id) ?? []), frame]);
  }
  for (const [id, own] of items) {
    const steps = own.filter(({ type }) => type !== `${PREFIX}.delta`).map(({ type }) => ORDER.indexOf(type));
    if (steps.some((step, at) => at > 0 && step <= (steps[at - 1] as number))) {
      throw new Error(`${id}: ${own.map(({ type }) => type).join(', ')}`);
    }
    const committed = own.some(({ type }) => type === 'input_audio_buffer.committed');
    const completed = own.find(({ type }) => type === `${PREFIX}.completed`);
    if (committed !== (completed !== undefined)) throw new Error(`${id}: committed ${committed}`);
    const deltas = own.filter(({ type }) => type === `${PREFIX}.delta`).map(({ delta }) => delta);
    if (completed) expect(deltas.join('')).toBe(completed.transcript);
    if (completed) expect(own.at(-1)).toBe(completed);
  }
}
