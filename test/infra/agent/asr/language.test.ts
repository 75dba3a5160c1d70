import { describe, expect, it } from 'vitest';
import { amongLanguages, decideLanguage, readLanguages } from '../../../../infra/pool/agent/asr/detect-language.ts';
import { recogniseRecording } from '../../../../infra/pool/agent/asr/recognise-recording.ts';
import type { Dispatcher } from '../../../../infra/pool/agent/engine/dispatch.ts';
import { createDetection } from '../../../../infra/pool/agent/server/detect-recorded.ts';
import { fp32Tensor } from '../../../../shared/kserve/tensor.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { joinSamples, silence, voice } from '../fixtures.ts';
import { testDescription } from '../start-agent.ts';

const detector = { model: 'language-id', languages: ['en', 'zh', 'yue', 'es'] };
const scored = (...shares: number[]) =>
  new Map([['LOG_PROBS', fp32Tensor('LOG_PROBS', Float32Array.from(shares, Math.log), [1, shares.length])]]);

describe('R3 the scores of a detector', () => {
  it('decide for a language from the least confidence on', () => {
    const read = readLanguages(scored(0.1, 0.1, 0.72, 0.08), detector);
    if (!read.ok) throw new Error(read.refusal.detail);
    expect(decideLanguage(read.value, 16_000)).toEqual(ok({ language: 'yue', confidence: 0.72 }));
    expect(decideLanguage(read.value, 15_999)).toMatchObject({ refusal: { reason: 'language_uncertain' } });
  });

  it('decide nothing for less than half a second', () => {
    const read = readLanguages(scored(0.97, 0.01, 0.01, 0.01), detector);
    const at = (seconds: number) => read.ok && decideLanguage(read.value, seconds * 16_000).ok;
    expect([at(0.1), at(0.45), at(0.5)]).toEqual([false, false, true]);
  });

  it('name the two likeliest languages otherwise', () => {
    const read = readLanguages(scored(0.05, 0.5, 0.4, 0.05), detector);
    const params = { first: 'zh', firstConfidence: 0.5, second: 'yue', secondConfidence: 0.4 };
    expect(read.ok && decideLanguage(read.value, 32_000)).toMatchObject({
      refusal: { reason: 'language_uncertain', params },
    });
  });

  it('R3 choose among the listed languages as if there were no others', () => {
    const read = readLanguages(scored(0.08, 0.44, 0.43, 0.05), detector);
    if (!read.ok) throw new Error(read.refusal.detail);
    const among = (...list: string[]) => decideLanguage(amongLanguages(read.value, list), 32_000);
    expect(among('yue-HK', 'en')).toEqual(ok({ language: 'yue', confidence: 0.843 }));
    expect(among('zh', 'yue')).toMatchObject({ refusal: { params: { first: 'zh', firstConfidence: 0.506 } } });
    expect(among('fr')).toMatchObject({ refusal: { params: { first: 'zh', firstConfidence: 0.44 } } });
  });

  it('R3 choose an unlisted language that is likelier than all listed ones', () => {
    const read = readLanguages(scored(0.12, 0.85, 0.01, 0.02), detector);
    const languages = read.ok ? amongLanguages(read.value, ['en', 'es']) : [];
    expect(decideLanguage(languages, 32_000)).toEqual(ok({ language: 'zh', confidence: 0.85 }));
  });

  it.each([[scored(0.5, 0.5)], [scored(1, Number.NaN, 0, 0)], [new Map()]])('fail the engine when wrong', (outputs) => {
    expect(readLanguages(outputs, detector)).toMatchObject({ refusal: { reason: 'engine_failed' } });
  });
});

/** Recognises 100 ms blocks of `sound`, and returns what happened in order. */
async function record(sound: Float32Array, admitted: Result<undefined> = ok(undefined)) {
  const happened: string[] = [];
  let block = 0;
  async function* blocks() {
    for (; block * 1_600 < sound.length; block++) {
      yield ok({ rate: 16_000, channels: [sound.subarray(block * 1_600, (block + 1) * 1_600)] });
    }
  }
  const outcome = await recogniseRecording({
    sound: blocks(),
    metrics: { utterance: () => {} },
    recognition: { add: async ({ start }) => ok(void happened.push(`utterance at ${start / 16_000}`)) },
    admit: async (opening) => {
      happened.push(`${opening.length / 16_000} s of speech in block ${block}`);
      return admitted;
    },
  });
  return { outcome, happened };
}

describe('R3 the opening of a recording', () => {
  it('is two seconds of speech, before its utterance has ended', async () => {
    const { happened } = await record(joinSamples(silence(3), voice(6), silence(1)));
    expect(happened).toEqual(['2 s of speech in block 49', expect.stringContaining('utterance at 2.')]);
  });

  it('spans short utterances, which wait for the decision', async () => {
    const short = [voice(0.5), silence(1.5)];
    const { happened } = await record(joinSamples(...short, ...short));
    expect(happened).toEqual([
      expect.stringContaining('s of speech in block 40'),
      expect.stringContaining('utterance at 0'),
      expect.stringContaining('utterance at 1.'),
    ]);
  });

  it('is short of a clip of 100 ms, and none of silence', async () => {
    expect((await record(voice(0.1))).happened[0]).toMatch(/^0\.1\d* s of speech/);
    expect((await record(silence(2))).happened).toEqual(['0 s of speech in block 20']);
  });

  it('refuses before any utterance is recognised', async () => {
    const refused = no(refuse('misdirected', { language: 'es', confidence: 0.9 }));
    const { outcome, happened } = await record(joinSamples(voice(1), silence(1), voice(4)), refused);
    expect([outcome, happened.length]).toEqual([refused, 1]);
  });
});

describe('R3 the detection of a recording', () => {
  const served = { description: { ...testDescription, name: 'language-id', languages: detector.languages } };
  const detection = (shares: number[], isLoaded = true, languages?: readonly string[]) =>
    createDetection(
      {
        context: {
          detector: () => served,
          lease: async (model) => (isLoaded ? { model, release: () => {} } : undefined),
          dispatcher: { run: async () => ok(scored(...shares)) } as unknown as Dispatcher,
        },
        ...{ ticket: { class: 'default', tenant: 'dev' }, signal: new AbortController().signal, deadline: 0 },
        languages,
      },
      ['en'],
    );

  it('admits a language of the model and reports it', async () => {
    const own = detection([0.9, 0.05, 0.03, 0.02]);
    expect(await own.admit(voice(2))).toEqual(ok(undefined));
    expect(own.found()).toEqual({ language: 'en', languageConfidence: 0.9 });
  });

  it('refuses a language of another model', async () => {
    const params = { language: 'es', confidence: 0.9 };
    expect(await detection([0.05, 0.03, 0.02, 0.9]).admit(voice(2))).toMatchObject({
      refusal: { reason: 'misdirected', params },
    });
  });

  it('refuses an own language that is not in the list of the request', async () => {
    const listed = await detection([0.99, 0.005, 0.003, 0.002], true, ['es', 'fr']).admit(voice(2));
    expect(listed).toMatchObject({ refusal: { reason: 'misdirected', params: { language: 'en' } } });
  });

  it('finds no language without speech, and no slot without a detector', async () => {
    const silent = detection([]);
    expect([await silent.admit(silence(0)), silent.found()]).toEqual([ok(undefined), { language: 'zxx' }]);
    expect(await detection([], false).admit(voice(2))).toMatchObject({ refusal: { reason: 'pool_busy' } });
  });
});
