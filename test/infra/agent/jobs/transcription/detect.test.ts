import { describe, expect, it } from 'vitest';
import type { ServedModel } from '../../../../../infra/pool/agent/models/served-model.ts';
import { readOutcome } from '../../../../../shared/jobs/outcome.ts';
import { fp32Tensor } from '../../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../../shared/result.ts';
import { type FakeJob, makeShop } from '../../../../fake/job.ts';
import { joinSamples, silence, voice, wavFile } from '../../fixtures.ts';

const facts = (double: FakeJob, name: string) => readOutcome(double.blobs.get(`1/${name}`)?.metadata ?? {});

/** A shop whose detector gives Spanish this probability. */
async function makeDetector(spanish: number) {
  const double = await makeShop();
  const served = double.shop.model('test-en') as ServedModel;
  const description = { ...served.description, name: 'language-id', languages: ['en', 'es', 'zh'] };
  const scores = fp32Tensor('LOG_PROBS', Float32Array.of((1 - spanish) / 2, spanish, (1 - spanish) / 2).map(Math.log));
  Object.assign(double.shop, {
    detector: () => ({ description }),
    dispatcher: { ...double.shop.dispatcher, run: async () => ok(new Map([['LOG_PROBS', scores]])) },
  });
  Object.assign(double.row, { model: 'reference' });
  return double;
}

describe('R3 the language of an upload', () => {
  it('is detected and written without a transcript', async () => {
    const double = await makeDetector(0.98);
    await double.upload(wavFile(joinSamples(silence(1), voice(3))));
    expect(await double.do('detect')).toEqual({ type: 'done' });
    expect([...double.blobs.keys()]).toEqual(['upload', '1/language']);
    expect(facts(double, 'language')).toEqual({ language: 'es', confidence: 0.98, agent: 'agent-1' });
  });

  it('is chosen among the listed languages', async () => {
    const double = await makeDetector(0.6);
    Object.assign(double.row, { languages: ['es'] });
    await double.upload(wavFile(voice(3)));
    await double.do('detect');
    expect(facts(double, 'language')).toMatchObject({ language: 'es', confidence: 1 });
  });

  it('is refused when it is uncertain, and is none without speech', async () => {
    const uncertain = await makeDetector(0.6);
    await uncertain.upload(wavFile(voice(3)));
    expect(await uncertain.do('detect')).toMatchObject({ type: 'refused' });
    expect(facts(uncertain, 'refusal')?.refusal).toMatchObject({
      reason: 'language_uncertain',
      params: { first: 'es', firstConfidence: 0.6 },
    });
    const silent = await makeDetector(0.98);
    await silent.upload(wavFile(silence(3)));
    await silent.do('detect');
    expect(facts(silent, 'language')).toEqual({ language: 'zxx', agent: 'agent-1' });
  });

  it('waits for an agent with a detector', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(3)));
    expect(await double.do('detect')).toMatchObject({ type: 'failed', refusal: { reason: 'pool_busy' } });
  });

  it.each([
    ['en', 0.93],
    ['zxx', undefined],
  ])('is in the transcript with its confidence: %s', async (language, languageConfidence) => {
    const double = await makeShop();
    Object.assign(double.row, { language, languageConfidence });
    await double.upload(wavFile(voice(2)));
    await double.do('plan');
    const final = (await double.lines('transcript')).at(-1);
    expect([final?.language, final?.languageConfidence]).toEqual([language, languageConfidence]);
  });
});
