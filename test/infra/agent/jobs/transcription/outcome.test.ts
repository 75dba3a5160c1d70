import { describe, expect, it } from 'vitest';
import { encodeLine } from '../../../../../infra/pool/agent/jobs/task/lines.ts';
import { answerOutcome } from '../../../../../infra/pool/agent/jobs/transcription/outcome-task.ts';
import type { OutcomeHead } from '../../../../../shared/jobs/outcome-head.ts';
import { sealSmall } from '../../../../../shared/seal/envelope-stream.ts';
import { answerEvent } from '../../../../../shared/speech/transcript.ts';
import { type FakeJob, makeShop, UPLOAD } from '../../../../fake/job.ts';
import { joinSamples, silence, voice, wavFile } from '../../fixtures.ts';

async function done(): Promise<FakeJob> {
  const double = await makeShop({ pieceSeconds: 10 });
  await double.upload(wavFile(joinSamples(voice(4), silence(1), voice(4), silence(1), voice(5))));
  expect((await double.doAll()).type).toBe('done');
  return double;
}

async function ask(double: FakeJob, more: Record<string, unknown> = {}, tenant = 'acme') {
  const sent: Record<string, unknown>[] = [];
  const head: OutcomeHead = {
    v: 1,
    task: 'outcome',
    upload: UPLOAD,
    run: 1,
    read: { url: 'https://blob.test/1/transcript' },
  };
  const result = await answerOutcome({
    context: { files: double.shop },
    ticket: { tenant },
    answer: {
      async send(event) {
        sent.push(event);
      },
    },
    head: { ...head, ...more },
    signal: new AbortController().signal,
  });
  return { result, sent };
}

/** A transcript of these lines, sealed as ours are. */
async function forge(double: FakeJob, lines: object[], name = '1/transcript') {
  const facts = { tenant: 'acme', upload: UPLOAD, name };
  const bytes = await sealSmall(facts, double.zone, Buffer.concat(lines.map(encodeLine)));
  double.blobs.set('1/transcript', { bytes, metadata: {} });
}

describe('the task `outcome`: the transcript of an upload for the edge (C11)', () => {
  it('answers as if it had been recognised just now', async () => {
    const { result, sent } = await ask(await done());
    expect(result.ok).toBe(true);
    expect(sent.map(({ type }) => type)).toEqual(['segment', 'segment', 'segment', 'final']);
    for (const event of sent) expect(answerEvent.safeParse(event).success).toBe(true);
    expect(sent.at(-1)).toMatchObject({ durationSeconds: 15, segments: 3, model: 'test-en' });
  });

  it('opens nothing for another tenant, upload or run', async () => {
    const double = await done();
    for (const asked of [
      await ask(double, {}, 'other'),
      await ask(double, { upload: '0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c' }),
      await ask(double, { run: 2 }),
      await ask(double, { read: { url: 'https://blob.test/1/results/0' } }),
    ]) {
      expect(asked.result).toMatchObject({ ok: false, refusal: { reason: 'envelope_invalid' } });
      expect(asked.sent).toEqual([]);
    }
  });

  it('says that a transcript has gone', async () => {
    const double = await done();
    double.blobs.delete('1/transcript');
    expect((await ask(double)).result).toMatchObject({ ok: false, refusal: { reason: 'transcript_gone' } });
  });

  it('never ends normally when it was cut', async () => {
    const double = await done();
    const stored = double.blobs.get('1/transcript');
    if (!stored) throw new Error('no transcript');
    double.blobs.set('1/transcript', { ...stored, bytes: stored.bytes.subarray(0, -1) });
    const cut = await ask(double);
    expect(cut.result.ok).toBe(false);
    expect(cut.sent.some(({ type }) => type === 'final')).toBe(false);
    const lines = await done().then((one) => one.lines('transcript'));
    await forge(double, lines.slice(0, -1));
    expect((await ask(double)).result).toMatchObject({ ok: false, refusal: { reason: 'internal' } });
    await forge(double, [...lines, ...lines]);
    const twice = await ask(double);
    expect(twice.result.ok).toBe(false);
    expect(twice.sent.some(({ type }) => type === 'final')).toBe(false);
    await forge(double, [{ type: 'surprise' }]);
    expect((await ask(double)).result).toMatchObject({ ok: false, refusal: { reason: 'internal' } });
  });

  it('refuses heads that are none, and agents without a zone key', async () => {
    const double = await done();
    expect((await ask(double, { run: 0 })).result).toMatchObject({ refusal: { reason: 'seal_broken' } });
    Object.assign(double, { shop: undefined });
    expect((await ask(double)).result).toMatchObject({ refusal: { reason: 'misdirected' } });
  });
});
