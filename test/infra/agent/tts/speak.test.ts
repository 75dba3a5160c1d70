import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDispatcher, type Task } from '../../../../infra/pool/agent/engine/dispatch.ts';
import { createKserveEngine } from '../../../../infra/pool/agent/engine/kserve.ts';
import { readRepository } from '../../../../infra/pool/agent/models/models.ts';
import { createSpeaker } from '../../../../infra/pool/agent/tts/create-speaker.ts';
import type { Speaker } from '../../../../infra/pool/agent/tts/speaker.ts';
import { trimSilence } from '../../../../infra/pool/agent/tts/trim-silence.ts';
import { openHearing } from '../../../../infra/pool/training/voice/hear.ts';
import { fp32Tensor, readInt32, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { startEmbedded } from '../../../contract/engine/embedded.ts';

const repository = path.resolve(import.meta.dirname, '../../../../infra/pool/models/repository');
const never = new AbortController().signal;
const symbols = " abcdefghijklmnopqrstuvwxyz',.?";

/** A voice whose network says as many samples as told, or refuses. */
function open(say: (task: Task) => Result<ReadonlyMap<string, Tensor>>) {
  const asked: Task[] = [];
  const speaker = createSpeaker({
    model: 'voice',
    parameters: { voices: ['ann', 'bob'], symbols, sample_rate: '16000', ssml: [] },
    now: () => 0,
    run: async (task) => {
      asked.push(task);
      return say(task);
    },
  });
  const numbers = (name: string, at = 0) => {
    const read = readInt32(asked[at]!.inputs.find((tensor) => tensor.name === name)!);
    return read.ok ? [...read.value] : [];
  };
  return { speaker, asked, numbers };
}

const tone = (samples: number) => Float32Array.from({ length: samples }, (_, at) => 0.5 * Math.sin(at / 3));
const answer = (sound: Float32Array) => ok(new Map([['AUDIO', fp32Tensor('AUDIO', sound, [1, sound.length])]]));

describe('T3: a speaker', () => {
  it('sends character ids, speaker and rate at the lowest urgency', async () => {
    const { speaker, asked, numbers } = open(() => answer(tone(1_600)));
    const spoken = await speaker.speak('Ab? c', { voice: 'bob', rate: 1.5 }, never);
    expect(spoken.ok && spoken.value.length).toBe(1_600);
    expect(
      numbers('TEXT')
        .map((place) => symbols[place])
        .join(''),
    ).toBe(' ab? see.');
    expect(numbers('VOICE')).toEqual([1]);
    expect(asked[0]).toMatchObject({ model: 'voice', class: 'batch', outputs: ['AUDIO'] });
  });

  it('C11 sends every piece by the way and at the place of the request', async () => {
    const { speaker, asked } = open(() => answer(tone(1_600)));
    const sent: Task[] = [];
    const run = async (task: Task) => {
      sent.push(task);
      return answer(tone(1_600));
    };
    const place = { class: 'batch', tenant: 'acme', deadline: 9 } as const;
    const text = `${'word '.repeat(25)}. ${'more '.repeat(25)}.`;
    expect(await speaker.speak(text, { run, place }, never)).toMatchObject({ ok: true });
    expect(sent).toMatchObject([place, place]);
    expect(asked).toEqual([]);
  });

  it('speaks a long text in pieces with pauses between them', async () => {
    const { speaker, asked } = open(() => answer(tone(1_600)));
    const spoken = await speaker.speak(`${'word '.repeat(25)}. ${'more '.repeat(25)}.`, {}, never);
    expect(asked).toHaveLength(2);
    expect(spoken.ok && spoken.value.length).toBe(1_600 + 4_000 + 1_600);
  });

  it('leaves at most 50 ms of silence at both ends', () => {
    const sound = new Float32Array(32_000);
    sound.set(tone(8_000), 12_000);
    const cut = trimSilence(sound, 16_000);
    const first = cut.findIndex((sample) => Math.abs(sample) > 0.004);
    expect(first).toBeLessThanOrEqual(800);
    expect(cut.length).toBeLessThanOrEqual(8_000 + 2 * 800);
    expect(trimSilence(new Float32Array(100), 16_000)).toHaveLength(0);
  });

  it.each([
    ['text_unspeakable', '…', {}],
    ['text_invalid', 'Привет hello', {}],
    ['text_too_long', 'a'.repeat(401), {}],
    ['voice_unknown', 'hello', { voice: 'eve' }],
    ['field_invalid', 'hello', { rate: 0.4 }],
    ['field_invalid', 'hello', { rate: Number.NaN }],
  ])('refuses %s without calling the engine', async (reason, text, wishes) => {
    const { speaker, asked } = open(() => answer(tone(10)));
    expect(await speaker.speak(text, wishes, never)).toMatchObject({ ok: false, refusal: { reason } });
    expect(asked).toHaveLength(0);
  });

  it.each([
    ['nothing', () => ok(new Map())],
    ['no numbers', () => answer(Float32Array.of(0.1, Number.NaN))],
    ['too much', () => answer(new Float32Array(41 * 16_000))],
    ['silence', () => answer(new Float32Array(16_000))],
    ['its own refusal', () => no(refuse('engine_failed'))],
  ])('refuses with engine_failed when the engine answers %s', async (_, say) => {
    const { speaker } = open(say);
    expect(await speaker.speak('hello', {}, never)).toMatchObject({ ok: false, refusal: { reason: 'engine_failed' } });
  });
});

/** Returns the median fundamental frequency of the voiced parts, Hz, by autocorrelation of 50 ms. */
function medianPitch(sound: Int16Array): number {
  const size = 800;
  const found: number[] = [];
  for (let at = 0; at + 2 * size <= sound.length; at += size) {
    const correlation = (lag: number) => {
      let [sum, one, other] = [0, 0, 0];
      for (let i = at; i < at + size; i++) {
        const [a = 0, b = 0] = [sound[i], sound[i + lag]];
        sum += a * b;
        one += a * a;
        other += b * b;
      }
      return sum / Math.sqrt(one * other + 1);
    };
    // 60 to 320 Hz.
    const scores = Array.from({ length: 217 }, (_, index) => correlation(50 + index));
    const best = Math.max(...scores);
    // The first peak near the best one: multiples of a period correlate as well.
    const lag = 50 + scores.findIndex((score, index) => score > 0.9 * best && score >= (scores[index + 1] ?? 0));
    if (best > 0.7) found.push(16_000 / lag);
  }
  return found.sort((one, other) => one - other)[Math.floor(found.length / 2)] ?? Number.NaN;
}

describe('T3: the voice of the repository', () => {
  let engine: Awaited<ReturnType<typeof startEmbedded>>;
  let client: ReturnType<typeof createKserveEngine>;
  let hear: (audio: Float32Array) => Promise<string>;
  let speaker: Speaker;
  beforeAll(async () => {
    const models = await readRepository(repository, { now: 0, onBroken: () => {} });
    const model = models.find(({ description }) => description.name === 'voice-en')!;
    expect(model.description).toMatchObject({ task: 'synthesize', languages: ['en'], precision: 'int8' });
    [engine, hear] = await Promise.all([startEmbedded(repository, ['voice-en']), openHearing(repository)]);
    client = createKserveEngine(engine.url, 2);
    const { run } = createDispatcher({ engine: client, slots: 1, now: Date.now });
    speaker = createSpeaker({ model: 'voice-en', parameters: model.speech!, run, now: Date.now });
  }, 60_000);
  afterAll(async () => {
    client?.close();
    await engine?.stop();
  }, 30_000);

  async function say(text: string, wishes = {}): Promise<Int16Array> {
    const spoken = await speaker.speak(text, wishes, never);
    expect(spoken, JSON.stringify(spoken.ok || spoken.refusal)).toMatchObject({ ok: true });
    return spoken.ok ? spoken.value : new Int16Array(0);
  }

  /** Returns the reference recogniser's transcript, with some silence around the audio. */
  function recognise(sound: Int16Array): Promise<string> {
    const padded = new Float32Array(sound.length + 8_000);
    for (const [at, sample] of sound.entries()) padded[4_000 + at] = sample / 32_768;
    return hear(padded);
  }

  it.each([
    ['slt', 'The meeting starts at ten in the morning.', 'the meeting starts at ten in the morning'],
    ['awb', 'Please send 3 copies of the report, today.', 'please send three copies of the report today'],
  ])('%s is understood by the recogniser', { timeout: 30_000 }, async (voice, text, heard) => {
    expect(await recognise(await say(text, { voice }))).toBe(heard);
  });

  it('speaks the same text identically, faster or slower by rate', { timeout: 30_000 }, async () => {
    const text = 'The weather will be fine tomorrow.';
    const [once, again] = [await say(text), await say(text)];
    expect(Buffer.compare(Buffer.from(once.buffer), Buffer.from(again.buffer))).toBe(0);
    const [slow, fast] = [await say(text, { rate: 0.5 }), await say(text, { rate: 2 })];
    expect(slow.length / once.length).toBeGreaterThan(1.8);
    expect(fast.length / once.length).toBeLessThan(0.6);
  });

  it.each([
    ['slt', 1.25],
    ['awb', 0.8],
  ])('R2 shifts the pitch of %s by %d at the same rate', { timeout: 30_000 }, async (voice, pitch) => {
    const text = 'The weather will be fine tomorrow.';
    const [plain, shifted] = [await say(text, { voice }), await say(text, { voice, pitch })];
    expect(medianPitch(shifted) / medianPitch(plain) / pitch).toBeCloseTo(1, 1);
    expect(shifted.length / plain.length).toBeCloseTo(1, 1);
    expect(await recognise(shifted)).toBe('the weather will be fine tomorrow');
  });

  it('says whatever is text', { timeout: 30_000 }, async () => {
    for (const text of [
      'a',
      "'tis",
      'x',
      'zzz',
      'q?',
      '7',
      `${'mmm '.repeat(20)}`,
      'Supercalifragilisticexpialidocious!',
    ])
      expect((await say(text)).length, text).toBeGreaterThan(800);
  });
});
