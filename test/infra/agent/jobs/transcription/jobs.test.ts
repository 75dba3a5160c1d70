import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { longest } from '../../../../../infra/pool/agent/jobs/transcription/plan.ts';
import type { ServedModel } from '../../../../../infra/pool/agent/models/served-model.ts';
import type { UploadJob } from '../../../../../shared/jobs/job.ts';
import { readOutcome } from '../../../../../shared/jobs/outcome.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { sealSmall } from '../../../../../shared/seal/envelope-stream.ts';
import { generateZoneKey } from '../../../../../shared/seal/zone-key.ts';
import { type FakeJob, makeShop } from '../../../../fake/job.ts';
import { flacFrames, flacHead, joinSamples, silence, voice, wavFile } from '../../fixtures.ts';

const clip = (name: string) => readFileSync(path.join(import.meta.dirname, '../../../../clips', name));

/** 26 s of talk with pauses, so that pieces of 10 s are cut at one. */
const talk = () =>
  joinSamples(
    ...[voice(4), silence(1), voice(4.2), silence(0.8), voice(4), silence(1), voice(3.5), silence(1), voice(3)],
    ...[silence(1.5), voice(2)],
  );

/** So many seconds of silence, almost for nothing: 8.19 s are 14 bytes. */
const compressed = (seconds: number) => {
  const frames = Math.ceil((seconds * 8_000) / 65_535);
  // Numbers of frames have at most two bytes here.
  const numbered = flacFrames(2_000);
  return Buffer.concat([
    flacHead(),
    ...Array.from({ length: frames }, (_, i) => numbered[i % 2_000] ?? new Uint8Array()),
  ]);
};

const facts = (double: FakeJob, name: string) => readOutcome(double.blobs.get(`1/${name}`)?.metadata ?? {});
const segmentsOf = (lines: Record<string, unknown>[]) => lines.filter(({ type }) => type === 'segment');

describe('a recording of one piece (C11)', () => {
  it('is recognised where it is planned: a transcript, and no plan', async () => {
    const double = await makeShop();
    await double.upload(wavFile(joinSamples(silence(1), voice(2), silence(1))));
    expect(await double.do('plan')).toEqual({ type: 'done', seconds: 4 });
    expect([...double.blobs.keys()]).toEqual(['upload', '1/transcript']);
    const [about, segment, final] = await double.lines('transcript');
    expect(about).toEqual({ type: 'about', v: 1, pieces: [0], warnings: [] });
    expect(segment).toMatchObject({ type: 'segment', index: 0, text: 'hello' });
    expect(segment?.start).toBeGreaterThan(0.6);
    expect(final).toMatchObject({ type: 'final', model: 'test-en', language: 'en', durationSeconds: 4, segments: 1 });
    expect(facts(double, 'transcript')).toEqual({ seconds: 4, pieces: 1, bytes: double.row.bytes, agent: 'agent-1' });
  });

  it('a plain upload is sealed from then on', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)), false);
    expect((await double.do('plan')).type).toBe('done');
    const { bytes = new Uint8Array() } = double.blobs.get('1/transcript') ?? {};
    expect(Buffer.from(bytes).includes('hello')).toBe(false);
    expect(await double.open('transcript')).toContain('hello');
  });

  it.each(['balance.wav', 'balance.flac', 'balance.mp3', 'balance.opus'])('in %s', async (name) => {
    const double = await makeShop();
    await double.upload(clip(name));
    expect((await double.do('plan')).type).toBe('done');
    const lossy = name.endsWith('mp3') || name.endsWith('opus');
    expect(facts(double, 'transcript')?.warnings ?? []).toEqual(lossy ? ['lossy'] : []);
  });

  it('without speech is an empty transcript that says so (M6)', async () => {
    const double = await makeShop();
    await double.upload(wavFile(silence(3)));
    expect(await double.do('plan')).toEqual({ type: 'done', seconds: 3 });
    expect(facts(double, 'transcript')?.warnings).toEqual(['no_speech']);
    expect(await double.lines('transcript')).toHaveLength(2);
  });
});

describe('a long recording (C11, T4)', () => {
  it('is cut, recognised by pieces, and merged in order with right times', async () => {
    const double = await makeShop({ pieceSeconds: 10 });
    const whole = await makeShop();
    await double.upload(wavFile(talk()));
    await whole.upload(wavFile(talk()));
    expect((await whole.do('plan')).type).toBe('done');
    expect(await double.doAll()).toEqual({ type: 'done', seconds: 26 });
    expect(double.row.pieces).toBe(3);
    const lines = segmentsOf(await double.lines('transcript'));
    const expected = segmentsOf(await whole.lines('transcript'));
    expect(lines.map(({ index }) => index)).toEqual(lines.map((_, index) => index));
    expect(lines.length).toBe(expected.length);
    lines.forEach((line, i) => {
      expect(line.text).toBe(expected[i]?.text);
      // A detector with less context finds the start of speech a unit or two earlier or later.
      expect(Math.abs(Number(line.start) - Number(expected[i]?.start))).toBeLessThan(0.21);
      expect(line.words).toHaveLength(1);
    });
    expect(facts(double, 'plan')).toMatchObject({ pieces: 3, seconds: 26, bytes: double.row.bytes });
    expect(facts(double, 'transcript')).toMatchObject({ seconds: 26, bytes: double.row.bytes });
  });

  it('pieces recognised out of order and twice give the same transcript', async () => {
    const make = async (order: number[]) => {
      const double = await makeShop({ pieceSeconds: 10 });
      double.say = (samples) => 'abcdefgh'.slice(0, 1 + (samples % 7));
      await double.upload(wavFile(talk()));
      await double.do('plan');
      double.row.pieces = 3;
      for (const piece of order) expect((await double.do('work', piece)).type).toBe('done');
      await double.do('merge');
      return double.open('transcript');
    };
    expect(await make([2, 0, 2, 1, 0])).toBe(await make([0, 1, 2]));
  });

  it('eleven minutes of silence give a transcript without words (M6)', async () => {
    const double = await makeShop({ pieceSeconds: 300 });
    await double.upload(compressed(660));
    expect(await double.doAll()).toEqual({ type: 'done', seconds: expect.closeTo(663.5, 0) });
    expect(double.row.pieces).toBe(3);
    expect(await double.lines('transcript')).toHaveLength(2);
    expect(facts(double, 'transcript')?.warnings).toEqual(['rate_low', 'no_speech']);
  });

  it('pieces and plan of different cuts are not merged', async () => {
    const double = await makeShop({ pieceSeconds: 12 });
    await double.upload(wavFile(talk()));
    // One version cuts elsewhere than the other, and died before its plan.
    double.troubles.push({ name: '1/plan', trouble: 'lost' });
    expect((await double.do('plan')).type).toBe('failed');
    Object.assign(double.shop, { pieceSamples: 160_000 });
    expect((await double.do('plan')).type).toBe('done');
    double.row.pieces = 3;
    for (const piece of [0, 1, 2]) expect((await double.do('work', piece)).type).toBe('done');
    expect(await double.do('merge')).toMatchObject({ type: 'failed', refusal: { reason: 'internal' } });
    expect(double.blobs.has('1/transcript')).toBe(false);
  });

  it('planned twice at once by two agents gives one set of pieces', async () => {
    const double = await makeShop({ pieceSeconds: 10 });
    await double.upload(wavFile(talk()));
    const ends = await Promise.all([double.do('plan'), double.do('plan')]);
    expect(ends.map(({ type }) => type)).toEqual(['done', 'done']);
    double.row.pieces = 3;
    const works = await Promise.all([0, 1, 2, 1].map((piece) => double.do('work', piece)));
    expect(works.map(({ type }) => type)).toEqual(['done', 'done', 'done', 'done']);
    expect((await double.do('merge')).type).toBe('done');
    const [about] = await double.lines('transcript');
    expect(about?.pieces).toHaveLength(3);
  });

  it('A11 leases the model until the piece is written', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)));
    const written: string[][] = [];
    const release = () => void written.push([...double.blobs.keys()]);
    Object.assign(double.shop, { lease: async (model: ServedModel) => ({ model, release }) });
    expect((await double.do('plan')).type).toBe('done');
    expect(written).toEqual([['upload', '1/transcript']]);
    // The revision was unloaded between the look and the lease.
    Object.assign(double.shop, { lease: async () => undefined });
    expect(await double.do('plan')).toMatchObject({ type: 'failed', refusal: { reason: 'misdirected' } });
  });

  it('says so when the model was replaced while it was worked on', async () => {
    const double = await makeShop({ pieceSeconds: 10 });
    await double.upload(wavFile(talk()));
    await double.do('plan');
    double.row.pieces = 3;
    await double.do('work', 0);
    const { model } = double.shop;
    const other = `sha256:${'1'.repeat(64)}`;
    Object.assign(double.shop, {
      model: (name: string) => {
        const served = model(name);
        return served && { ...served, description: { ...served.description, revision: other } };
      },
    });
    await double.do('work', 1);
    await double.do('work', 2);
    await double.do('merge');
    expect(facts(double, 'transcript')?.warnings).toContain('revisions_mixed');
  });
});

describe('bad input is an outcome with a reason, never an endless retry (C11)', () => {
  const cases: Record<string, [file: () => Uint8Array, reason: string]> = {
    'zero bytes': [() => new Uint8Array(0), 'audio_empty'],
    'one byte': [() => Uint8Array.of(7), 'audio_unsupported'],
    'a wrong type': [() => new TextEncoder().encode('%PDF-1.7 '.repeat(100)), 'audio_unsupported'],
    'a header and nothing else': [() => wavFile(new Float32Array(0)), 'audio_empty'],
    'a recording that was cut': [() => wavFile(voice(2)).subarray(0, 20_000), 'audio_truncated'],
    'a header that makes no sense': [() => wavFile(voice(1), 0), 'audio_invalid'],
  };
  it.each(Object.entries(cases))('%s', { timeout: 60_000 }, async (_, [file, reason]) => {
    for (const sealed of [true, false]) {
      const double = await makeShop();
      await double.upload(file(), sealed);
      const end = await double.do('plan');
      expect(end).toMatchObject({ type: 'refused', refusal: { reason } });
      expect(facts(double, 'refusal')?.refusal?.reason).toBe(reason);
      expect(double.blobs.get('1/refusal')?.bytes).toHaveLength(0);
      expect(double.blobs.has('1/transcript') || double.blobs.has('1/plan')).toBe(false);
    }
  });

  it('compressed silence that unpacks to more than the grant allows', async () => {
    const double = await makeShop();
    await double.upload(compressed(660), false);
    expect(double.row.bytes).toBeLessThan(2_000);
    Object.assign(double.row, { secondsMax: 600 });
    const end = await double.do('plan');
    expect(end).toMatchObject({ type: 'refused', refusal: { reason: 'audio_too_long', params: { limit: 600 } } });
    expect(facts(double, 'refusal')?.refusal).toEqual({ reason: 'audio_too_long', params: { limit: 600 } });
  });

  it('a grant that says nothing allows twelve hours, and no grant allows more', () => {
    expect(longest({})).toBe(43_200);
    expect(longest({ secondsMax: 86_400 })).toBe(43_200);
    expect(longest({ secondsMax: 60 })).toBe(60);
  });

  const other = async () => (await generateZoneKey()).zoneKey;
  const place = (double: FakeJob, name = 'upload', upload = double.row.id) => ({
    tenant: double.row.tenant,
    upload,
    name,
  });
  const envelopes: Record<string, (double: FakeJob) => Promise<Uint8Array>> = {
    'the key of another zone': async (double) => sealSmall(place(double), await other(), wavFile(voice(1))),
    'another upload': (double) =>
      sealSmall(place(double, 'upload', '0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c'), double.zone, wavFile(voice(1))),
    'another file of it': (double) => sealSmall(place(double, '1/pieces/0'), double.zone, wavFile(voice(1))),
    'no envelope': async () => wavFile(voice(1)),
    'half a head': async (double) => (await sealSmall(place(double), double.zone, wavFile(voice(1)))).subarray(0, 100),
    'a cut': async (double) => (await sealSmall(place(double), double.zone, wavFile(voice(9)))).subarray(0, -70_000),
    'a cut within the last record': async (double) =>
      (await sealSmall(place(double), double.zone, wavFile(voice(9)))).subarray(0, -1),
    'a changed byte behind the sound': async (double) => {
      const sealed = await sealSmall(
        place(double),
        double.zone,
        Buffer.concat([wavFile(voice(1)), new Uint8Array(99_999)]),
      );
      const last = sealed.length - 1;
      sealed[last] = (sealed[last] ?? 0) ^ 1;
      return sealed;
    },
  };
  it.each(Object.entries(envelopes))('an envelope with %s', async (_, make) => {
    const double = await makeShop();
    await double.upload(new Uint8Array(0));
    double.blobs.set('upload', { bytes: await make(double), metadata: {} });
    const end = await double.do('plan');
    expect(end).toMatchObject({ type: 'refused', refusal: { reason: 'envelope_invalid' } });
    const { refusal } = facts(double, 'refusal') ?? {};
    expect(refusal?.params?.rule).toMatch(/^[\x20-\x7e]{5,80}$/);
    expect(double.blobs.has('1/transcript')).toBe(false);
  });

  it('a language that the model does not know, before anything is decoded', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(1)));
    Object.assign(double.row, { language: 'fi' });
    expect(await double.do('plan')).toMatchObject({ type: 'refused', refusal: { reason: 'language_unknown' } });
  });

  it('a file that was replaced or has gone', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(1)));
    double.troubles.push({ name: 'upload', trouble: 'changed' });
    expect(await double.do('plan')).toMatchObject({ type: 'refused', refusal: { reason: 'upload_changed' } });
    const empty = await makeShop();
    expect(await empty.do('plan')).toMatchObject({ type: 'refused', refusal: { reason: 'upload_audio_gone' } });
  });

  it.each([
    ['work', '1/pieces/0'],
    ['merge', '1/results/0'],
    ['merge', '1/plan'],
  ] as const)('T4: a %s job ends the run when storage has lost its %s', async (kind, lost) => {
    const double = await makeShop({ pieceSeconds: 10 });
    await double.upload(wavFile(talk()));
    expect((await double.do('plan')).type).toBe('done');
    double.row.pieces = 3;
    if (kind === 'merge') for (const piece of [0, 1, 2]) await double.do('work', piece);
    double.blobs.delete(lost);
    expect(await double.do(kind, 0)).toMatchObject({ type: 'refused', refusal: { reason: 'upload_parts_lost' } });
    expect(facts(double, 'refusal')?.refusal?.reason).toBe('upload_parts_lost');
  });
});

describe('transient failures leave the job in the queue', () => {
  it.each([true, false])('storage that breaks while the file is read (sealed: %s)', async (sealed) => {
    const double = await makeShop();
    await double.upload(wavFile(voice(3)), sealed);
    double.troubles.push({ name: 'upload', trouble: 'cut' });
    expect(await double.do('plan')).toMatchObject({ type: 'failed', refusal: { reason: 'uploads_unavailable' } });
    expect(double.blobs.size).toBe(1);
    expect((await double.do('plan')).type).toBe('done');
  });

  it.each(['1/pieces/1', '1/plan', '1/results/1', '1/transcript'])('a write of %s that is lost', async (name) => {
    const double = await makeShop({ pieceSeconds: 10 });
    await double.upload(wavFile(talk()));
    double.troubles.push({ name, trouble: 'lost' });
    expect(await double.doAll()).toMatchObject({ type: 'failed', refusal: { reason: 'uploads_unavailable' } });
    expect(await double.doAll()).toMatchObject({ type: 'done' });
  });

  it.each(['1/pieces/1', '1/plan', '1/results/1', '1/transcript', '1/refusal'])(
    'a write of %s that succeeded without an answer is found next time',
    async (name) => {
      const double = await makeShop({ pieceSeconds: 10 });
      await double.upload(name === '1/refusal' ? new Uint8Array(0) : wavFile(talk()));
      double.troubles.push({ name, trouble: 'persisted' });
      expect((await double.doAll()).type).toBe('failed');
      const before = double.blobs.get(name)?.bytes;
      expect((await double.doAll()).type).toBe(name === '1/refusal' ? 'refused' : 'done');
      expect(double.blobs.get(name)?.bytes).toBe(before);
    },
  );

  it('a refusal that cannot be written', async () => {
    const double = await makeShop();
    await double.upload(new Uint8Array(0));
    double.troubles.push({ name: '1/refusal', trouble: 'lost' });
    expect((await double.do('plan')).type).toBe('failed');
  });

  it('an engine that fails', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)));
    double.refusals.push(refuse('engine_failed'));
    expect(await double.do('plan')).toMatchObject({ type: 'failed', refusal: { reason: 'engine_failed' } });
    expect((await double.do('plan')).type).toBe('done');
  });

  it('a model that another agent has', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)));
    Object.assign(double.row, { model: 'elsewhere' });
    expect(await double.do('plan')).toMatchObject({ type: 'failed', refusal: { reason: 'misdirected' } });
  });

  it('a key that is not released yet', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)));
    const keyring = {
      ...double.shop.keyring,
      held: async () => ({ ok: false, refusal: refuse('uploads_unavailable') }),
    };
    Object.assign(double.shop, { keyring });
    expect(await double.do('plan')).toMatchObject({ type: 'failed', refusal: { reason: 'uploads_unavailable' } });
  });

  it('a piece of ours that does not open: no fault of the sender', async () => {
    const double = await makeShop({ pieceSeconds: 10 });
    await double.upload(wavFile(talk()));
    await double.do('plan');
    double.row.pieces = 3;
    const piece = double.blobs.get('1/pieces/0');
    if (!piece) throw new Error('no piece');
    double.blobs.set('1/pieces/1', piece);
    expect((await double.do('work', 1)).type).toBe('failed');
    expect(double.blobs.has('1/refusal')).toBe(false);
  });

  it('a result that is cut or of another piece', async () => {
    const double = await makeShop({ pieceSeconds: 10 });
    await double.upload(wavFile(talk()));
    await double.do('plan');
    double.row.pieces = 3;
    for (const piece of [0, 1, 2]) await double.do('work', piece);
    const [first, second] = [double.blobs.get('1/results/0'), double.blobs.get('1/results/1')];
    if (!first || !second) throw new Error('no results');
    double.blobs.set('1/results/1', { ...second, bytes: second.bytes.subarray(0, -3) });
    expect((await double.do('merge')).type).toBe('failed');
    double.blobs.set('1/results/1', first);
    expect((await double.do('merge')).type).toBe('failed');
    double.blobs.set('1/results/1', second);
    expect((await double.do('merge')).type).toBe('done');
  });

  it('an order to stop', async () => {
    const double = await makeShop();
    await double.upload(wavFile(talk()));
    const stop = new AbortController();
    double.say = () => {
      stop.abort();
      return 'hello';
    };
    const end = await double.do('plan', undefined, stop.signal);
    expect(end.type).toBe('failed');
    expect(double.blobs.has('1/transcript')).toBe(false);
  });

  it('a bug of ours: with its place, and without its words', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)));
    const broken = {
      open() {
        throw new TypeError('secret words');
      },
    };
    Object.assign(double.shop, { jobsClient: broken });
    const end = await double.do('plan');
    expect(end).toMatchObject({ type: 'failed', refusal: { reason: 'internal' } });
    expect(JSON.stringify(end)).not.toContain('secret words');
  });
});

describe('an address that does not write any more (T4)', () => {
  const opens = (double: FakeJob, before: (times: number) => void = () => {}) => {
    const { open } = double.shop.jobsClient;
    let times = 0;
    Object.assign(double.shop, {
      jobsClient: {
        open(job: UploadJob) {
          times += 1;
          before(times);
          return open(job);
        },
      },
    });
    return () => times;
  };

  it('is renewed, and the outcome is written there', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)));
    const times = opens(double);
    double.troubles.push({ name: '1/transcript', trouble: 'closed' });
    expect((await double.do('plan')).type).toBe('done');
    expect(times()).toBe(2);
    expect(double.blobs.has('1/transcript')).toBe(true);
  });

  it('because we have written there ourselves: found, and done', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)));
    double.troubles.push({ name: '1/transcript', trouble: 'spent' });
    expect((await double.do('plan')).type).toBe('done');
    expect(double.written.filter((name) => name === '1/transcript')).toHaveLength(2);
  });

  it('and the outcome counted meanwhile: the job is done', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)));
    opens(double, (times) => {
      double.unwanted = times > 1;
    });
    double.troubles.push({ name: '1/transcript', trouble: 'spent' });
    expect((await double.do('plan')).type).toBe('done');
    expect(double.written.filter((name) => name === '1/transcript')).toHaveLength(1);
  });

  it('and no renewed address works: the queue retries later', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(2)));
    const closed = { name: '1/transcript', trouble: 'closed' } as const;
    double.troubles.push(closed, closed);
    expect(await double.do('plan')).toMatchObject({ type: 'failed', refusal: { reason: 'uploads_unavailable' } });
    expect((await double.do('plan')).type).toBe('done');
  });
});

it('an unwanted job is dropped', async () => {
  const double = await makeShop();
  await double.upload(wavFile(voice(2)));
  double.unwanted = true;
  expect(await double.do('plan')).toEqual({ type: 'unwanted' });
  expect(double.written).toEqual([]);
});
