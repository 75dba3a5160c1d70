import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createDecoder, type WordDecoder } from '../../../../infra/pool/agent/asr/decode/decoder.ts';
import type { Recogniser } from '../../../../infra/pool/agent/asr/segment.ts';
import { createTextReader } from '../../../../infra/pool/agent/asr/text/text-reader.ts';
import type { VoiceDetector } from '../../../../infra/pool/agent/asr/vad/detect.ts';
import type { Level } from '../../../../infra/pool/agent/degrade/degrade.ts';
import { ResultCache } from '../../../../infra/pool/agent/degrade/result-cache.ts';
import type { Dispatcher } from '../../../../infra/pool/agent/engine/dispatch.ts';
import { newTally } from '../../../../infra/pool/agent/live-counts/tally.ts';
import { checkForm, transcribe } from '../../../../infra/pool/agent/server/transcribe.ts';
import { UTTERANCES_IN_FLIGHT_MAX } from '../../../../infra/pool/agent/settings/limits.ts';
import { fp32Tensor, int32Tensor } from '../../../../shared/kserve/tensor.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Opened } from '../../../../shared/seal/records.ts';
import { CONTENT_TYPE_CHARACTERS } from '../../../../shared/speech/limits.ts';
import type { AnswerEvent } from '../../../../shared/speech/transcript.ts';
import { spell, tokens } from '../../../fake/engine.ts';
import { formBytes, joinSamples, multipart, silence, voice, wavFile } from '../fixtures.ts';

/** Detector calls in order; the real detector answers them. */
const detectors: string[] = [];
vi.mock('../../../../infra/pool/agent/asr/vad/detect.ts', async (original) => {
  const real = await original<typeof import('../../../../infra/pool/agent/asr/vad/detect.ts')>();
  return {
    ...real,
    async createVoiceDetector(): Promise<VoiceDetector> {
      const detector = await real.createVoiceDetector();
      let freed = false;
      return {
        hasVoice(unit) {
          detectors.push(freed ? 'heard after free' : 'heard');
          return freed ? false : detector.hasVoice(unit);
        },
        save: () => detector.save(),
        free() {
          detectors.push('freed');
          freed = true;
          detector.free();
        },
      };
    },
  };
});
beforeEach(() => {
  detectors.length = 0;
});

const turns = async () => {
  for (let i = 0; i < 100; i++) await new Promise(setImmediate);
};

interface Scene {
  readonly body: Uint8Array;
  /** Bytes after the body, once it resolves. */
  readonly rest?: Promise<Uint8Array>;
  readonly head?: Record<string, unknown>;
  readonly run?: Dispatcher['run'];
  readonly recogniser?: Recogniser;
  readonly level?: Level;
  readonly results?: ResultCache;
  readonly tenant?: string;
}

function begin({ body, rest, head = {}, run = () => new Promise(() => {}), ...scene }: Scene) {
  const { recogniser, level = 0, results = new ResultCache(), tenant = 'dev' } = scene;
  const events: AnswerEvent[] = [];
  const tally = newTally(0);
  const cancel = new AbortController();
  async function* records(): AsyncGenerator<Result<Opened>> {
    yield ok({ plaintext: body, final: !rest });
    if (rest) yield ok({ plaintext: await rest, final: true });
  }
  const description = {
    name: 'm',
    task: 'transcribe' as const,
    languages: ['en'],
    revision: `sha256:${'0'.repeat(64)}`,
    precision: 'fp32' as const,
    stage: 'full' as const,
    loaded: 0,
  };
  const decoder = createDecoder({ tokens, blank: 0, wordBoundary: 1 });
  const outcome = transcribe({
    context: {
      agent: 'agent-1',
      dispatcher: { run } as unknown as Dispatcher,
      degrader: { note: () => {}, level: () => level },
      results,
      metrics: { utterance: () => {}, recorded: () => {}, cached: () => {} } as never,
      now: () => 0,
      detector: () => undefined,
      lease: async () => undefined,
    },
    ticket: { class: 'default', tenant, model: 'm' },
    model: { description, recogniser: recogniser ?? { model: 'm', frameSeconds: 0.04, decoder } },
    answer: { send: async (event) => void events.push(event as AnswerEvent) },
    head: { v: 1, task: 'transcribe', dialect: 'openai-audio', contentType: multipart, model: 'm', ...head },
    records: records(),
    signal: cancel.signal,
    deadline: 0,
    tally,
  });
  return { outcome, cancel, events, tally };
}

/** One utterance more than may be in flight, and speech behind them, in a chunk that is read at once. */
const talk = wavFile(
  joinSamples(
    ...Array.from({ length: UTTERANCES_IN_FLIGHT_MAX }, () => [voice(0.4, 8_000), silence(1, 8_000)]).flat(),
    voice(0.4, 8_000),
  ),
  8_000,
);
const file = { name: 'file', value: talk, filename: 'a.wav' };

describe('a form that goes wrong behind its file', () => {
  it('is refused at once, and the voice detector lives until the last reader', async () => {
    const answers: (() => void)[] = [];
    const { logProbs, frames } = spell('a');
    const value = new Map([
      ['LOG_PROBS', fp32Tensor('LOG_PROBS', logProbs, [1, frames, tokens.length])],
      ['FRAMES', int32Tensor('FRAMES', Int32Array.of(frames), [1, 1])],
    ]);
    const all = UTTERANCES_IN_FLIGHT_MAX;
    const { outcome } = begin({
      body: formBytes([file], false),
      rest: vi.waitFor(() => expect(answers.length).toBe(all)).then(() => formBytes([file])),
      run: () => new Promise((resolve) => answers.push(() => resolve(ok(value)))),
    });
    expect(await outcome).toMatchObject({ ok: false, refusal: { reason: 'field_invalid', params: { field: 'file' } } });
    await turns();
    // The reader still waits for the engine. It answers now, and the reader goes on in the chunk it has.
    expect(detectors).not.toContain('freed');
    const before = detectors.length;
    for (const answer of answers) answer();
    await vi.waitFor(() => expect(detectors).toContain('freed'));
    await turns();
    expect(detectors.length).toBeGreaterThan(before + 1);
    expect(detectors).not.toContain('heard after free');
    expect(detectors.filter((one) => one === 'freed')).toHaveLength(1);
  });

  it('lets the detector go when the request is over', async () => {
    const { outcome, cancel } = begin({ body: formBytes([file, file]) });
    await outcome;
    cancel.abort();
    await vi.waitFor(() => expect(detectors).toContain('freed'));
  });
});

describe('U5 words that a request names', () => {
  const prompt = { name: 'prompt', value: 'Kowalski, Zyrtec' };
  const one = { name: 'file', value: wavFile(voice(0.4)), filename: 'a.wav' };
  const terms = [{ text: 'Kowalski' }, { text: 'Zyrtec', boost: 2 }];
  it.each<[string, Uint8Array, Record<string, unknown>]>([
    ['a prompt before the file', formBytes([prompt, one]), {}],
    ['a prompt that the edge found behind the file', formBytes([one, prompt]), { prompt: prompt.value }],
    ['terms of a bare recording', wavFile(voice(0.4)), { dialect: 'deepgram-listen', terms }],
    ['keywords', formBytes([...'Kowalski,Zyrtec'.split(',').map((value) => ({ name: 'keywords[]', value })), one]), {}],
  ])('reach a model with an input for them: %s', async (_, body, head) => {
    const prompts: unknown[] = [];
    const { outcome, cancel } = begin({
      body,
      head,
      recogniser: { model: 'm', text: createTextReader(['TEXT']), takesLength: false, takesPrompt: true },
      run: async ({ inputs }) => {
        prompts.push(
          ...inputs
            .map(({ name, datatype, bytes }) => [name, datatype, Buffer.from(bytes).toString('utf8', 4)])
            .slice(1),
        );
        return no(refuse('engine_failed'));
      },
    });
    await outcome;
    cancel.abort();
    expect(prompts).toEqual([['PROMPT', 'BYTES', 'Kowalski, Zyrtec']]);
  });

  it('reach the decoder of a model that spells', async () => {
    const begun: unknown[] = [];
    const real = createDecoder({ tokens, blank: 0, wordBoundary: 1 });
    const decoder: WordDecoder = {
      ...real,
      begin(terms) {
        begun.push(terms);
        return real.begin(terms);
      },
    };
    const { logProbs, frames } = spell('a');
    const value = new Map([
      ['LOG_PROBS', fp32Tensor('LOG_PROBS', logProbs, [1, frames, tokens.length])],
      ['FRAMES', int32Tensor('FRAMES', Int32Array.of(frames), [1, 1])],
    ]);
    const { outcome } = begin({
      body: formBytes([prompt, one]),
      recogniser: { model: 'm', frameSeconds: 0.04, decoder },
      run: async () => ok(value),
    });
    await outcome;
    expect(begun).toEqual([[{ text: 'Kowalski' }, { text: 'Zyrtec' }]]);
  });

  it('refuses keywords beyond the bounds by name', async () => {
    const { outcome } = begin({ body: formBytes([{ name: 'keywords', value: 'x'.repeat(65) }, one]) });
    expect(await outcome).toMatchObject({ refusal: { reason: 'field_invalid', params: { field: 'keywords' } } });
  });
});

describe('the head', () => {
  it('an overlong content type is form_invalid, not seal_broken', async () => {
    const contentType = `${multipart}; note=${'x'.repeat(CONTENT_TYPE_CHARACTERS)}`;
    const { outcome } = begin({ body: formBytes([]), head: { contentType } });
    expect(await outcome).toMatchObject({ ok: false, refusal: { reason: 'form_invalid' } });
  });

  it('may have members that this version does not know', async () => {
    const { outcome } = begin({ body: formBytes([]), head: { query: { language: ['en'] }, later: 1 } });
    expect(await outcome).toMatchObject({ ok: false, refusal: { reason: 'field_missing' } });
  });
});

describe('languages of form, hints and model', () => {
  const judge = (language: string | undefined, hint: string | undefined, spoken: string[]) => {
    const form = checkForm(
      language === undefined ? {} : { language: [language] },
      { model: 'm', language: hint },
      spoken,
    );
    return form.ok ? form.value.language : form.refusal.reason;
  };
  it.each<[string | undefined, string | undefined, string[], string]>([
    ['en-US', 'en', ['en'], 'en-US'],
    ['en', 'en-US', ['en'], 'en'],
    ['en-US', 'en-GB', ['en'], 'hints_conflict'],
    ['de', 'en', ['en', 'de'], 'hints_conflict'],
    ['de', 'auto', ['en', 'de'], 'de'],
    ['auto', 'de', ['en', 'de'], 'de'],
    [undefined, undefined, ['de', 'en'], 'de'],
    [undefined, 'auto', ['de'], 'de'],
    ['en-US', undefined, ['en-GB'], 'language_unknown'],
    ['de', undefined, ['en'], 'language_unknown'],
  ])('form %s, hint %s, model %s: %s', (language, hint, spoken, expected) => {
    expect(judge(language, hint, spoken)).toBe(expected);
  });
});

describe('A20 a degraded agent', () => {
  const { logProbs, frames } = spell('a');
  const value = new Map([
    ['LOG_PROBS', fp32Tensor('LOG_PROBS', logProbs, [1, frames, tokens.length])],
    ['FRAMES', int32Tensor('FRAMES', Int32Array.of(frames), [1, 1])],
  ]);
  const one = { name: 'file', value: wavFile(voice(0.4)), filename: 'a.wav' };
  const prompt = { name: 'prompt', value: 'Kowalski' };

  /** Serves one recording and returns its form event, the texts, and how often the engine worked. */
  async function serve(results: ResultCache, scene: Partial<Scene>) {
    let calls = 0;
    const run: Dispatcher['run'] = async () => {
      calls++;
      return ok(value);
    };
    const { outcome, events, tally } = begin({ body: formBytes([one]), results, run, ...scene });
    expect(await outcome).toEqual(ok(undefined));
    const form = events.find((event) => event.type === 'form');
    const { segments } = events.at(-1) as Extract<AnswerEvent, { type: 'final' }>;
    const texts = events.flatMap((event) => (event.type === 'segment' ? [event.text] : []));
    return { degraded: form?.degraded, cached: form?.cached, calls, texts, segments, counted: tally.isRecording };
  }
  const recognised = { cached: undefined, calls: 1, texts: ['a'], segments: 1, counted: true };

  it('A20: tells its level and stores nothing at level 0', async () => {
    const results = new ResultCache();
    expect(await serve(results, { level: 0 })).toEqual({ ...recognised, degraded: undefined });
    expect(results.size).toBe(0);
    expect(await serve(results, { level: 1 })).toEqual({ ...recognised, degraded: 1 });
    expect(results.size).toBe(1);
  });

  it('A20: serves a stored result at level 3 to the same tenant and parameters only', async () => {
    const results = new ResultCache();
    await serve(results, { level: 1 });
    expect(await serve(results, { level: 2 })).toEqual({ ...recognised, degraded: 2 });
    const cached = { degraded: 3, cached: true, calls: 0, texts: ['a'], segments: 1, counted: false };
    expect(await serve(results, { level: 3 })).toEqual(cached);
    for (const other of [
      { tenant: 'other' },
      { body: formBytes([prompt, one]) },
      { head: { multichannel: true } },
      { body: formBytes([{ ...one, value: wavFile(voice(0.5)) }]) },
    ]) {
      expect(await serve(results, { level: 3, ...other })).toEqual({ ...recognised, degraded: 3 });
    }
    expect(await serve(results, { level: 3, tenant: 'other' })).toEqual(cached);
  });

  it('A20: recognises an announced stream without the cache', async () => {
    const results = new ResultCache();
    const body = formBytes([{ name: 'stream', value: 'true' }, one]);
    await serve(results, { level: 3, body });
    expect(await serve(results, { level: 3, body })).toEqual({ ...recognised, degraded: 3 });
  });

  it('A20: narrows sound above 16 kHz from level 2 on', async () => {
    /** Bytes that the engine gets of a recording at `rate` Hz. */
    async function soundAt(level: Level, rate: number): Promise<string> {
      const sounds: string[] = [];
      const body = formBytes([{ ...one, value: wavFile(voice(0.4, rate), rate) }]);
      const run: Dispatcher['run'] = async ({ inputs }) => {
        sounds.push(Buffer.from(inputs[0]?.bytes ?? []).toString('base64'));
        return ok(value);
      };
      await begin({ body, level, run }).outcome;
      return sounds.join();
    }
    expect(await soundAt(2, 16_000)).toBe(await soundAt(0, 16_000));
    expect(await soundAt(1, 48_000)).toBe(await soundAt(0, 48_000));
    expect(await soundAt(2, 48_000)).not.toBe(await soundAt(0, 48_000));
  });

  it('A20: refuses mirrored copies', async () => {
    const { outcome } = begin({ body: formBytes([one]), level: 1, head: { mirror: { text: 'a' } } });
    expect(await outcome).toMatchObject({ refusal: { reason: 'pool_busy' } });
  });

  it('A20: decodes with fewer hypotheses', async () => {
    const narrow: unknown[] = [];
    const real = createDecoder({ tokens, blank: 0, wordBoundary: 1 });
    const decoder: WordDecoder = {
      ...real,
      begin(terms, isNarrow) {
        narrow.push(isNarrow);
        return real.begin(terms, isNarrow);
      },
    };
    for (const level of [0, 1] as const) {
      await serve(new ResultCache(), { level, recogniser: { model: 'm', frameSeconds: 0.04, decoder } });
    }
    expect(narrow).toEqual([false, true]);
  });
});
