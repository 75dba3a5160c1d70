import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { doJob } from '../../../../../infra/pool/agent/jobs/do-job.ts';
import { answerDocument } from '../../../../../infra/pool/agent/jobs/speech/document-task.ts';
import type { Speaker, SpeechOptions } from '../../../../../infra/pool/agent/tts/speaker.ts';
import { eventId } from '../../../../../shared/audit/event-id.ts';
import { encodeDocument, PROJECT_DOCUMENT_BYTES } from '../../../../../shared/jobs/document.ts';
import type { DocumentHead } from '../../../../../shared/jobs/document-head.ts';
import type { UploadJob } from '../../../../../shared/jobs/job.ts';
import type { OutcomeName } from '../../../../../shared/jobs/paths.ts';
import { documentId, projectIdOf } from '../../../../../shared/jobs/project-id.ts';
import { type Manifest, manifest } from '../../../../../shared/jobs/project-manifest.ts';
import { type Refusal, refuse } from '../../../../../shared/refusal.ts';
import { no, ok } from '../../../../../shared/result.ts';
import { sealSmall } from '../../../../../shared/seal/envelope-stream.ts';
import { type FakeJob, makeShop, revision } from '../../../../fake/job.ts';
import { wav as wavFileOf } from '../../../../wav.ts';

const RATE = 16_000;
const PROJECT = projectIdOf(eventId(1_700_000_000_000, new Uint8Array(10)));
const ID = documentId(PROJECT, 0);
const gaps = { segment: 100, block: 500 };

/** Says each text as samples of one value, the length of the text times ten, so that it can be heard which one it was. */
const soundOf = (text: string): Int16Array =>
  new Int16Array(10 * text.length).fill(1 + (createHash('sha256').update(text).digest()[0] ?? 0));

interface Bench extends FakeJob {
  readonly said: string[];
  readonly requested: SpeechOptions[];
  /** Numbers of samples by text, in place of `soundOf`. */
  readonly lengths: Map<string, number>;
  readonly troubled: Refusal[];
  run(kind: UploadJob['kind'], more?: Partial<UploadJob>): ReturnType<typeof doJob>;
  finish(): ReturnType<typeof doJob>;
  edit(piece: number, edition: number, text: string): Promise<void>;
}

async function bench(
  blocks: readonly (readonly string[])[],
  contentType = 'application/json',
  options: Parameters<typeof makeShop>[0] = {},
): Promise<Bench> {
  const double = await makeShop(options);
  const said: string[] = [];
  const requested: SpeechOptions[] = [];
  const lengths = new Map<string, number>();
  const troubled: Refusal[] = [];
  const speaker: Speaker = {
    model: 'voice-en',
    sampleRate: RATE,
    async speak(text, options) {
      said.push(text);
      requested.push(options);
      const trouble = troubled.shift();
      if (trouble) return no(trouble);
      const length = lengths.get(text);
      if (length !== undefined) return ok(new Int16Array(length));
      return /\p{L}/u.test(text) ? ok(soundOf(text)) : no(refuse('text_unspeakable'));
    },
  };
  const description = {
    name: 'voice-en',
    task: 'synthesize' as const,
    languages: ['en'],
    revision,
    precision: 'fp32' as const,
    stage: 'full' as const,
    loaded: 1,
  };
  const shop = {
    ...double.shop,
    model: (name: string) => (name === 'voice-en' ? { description, speaker } : undefined),
  };
  Object.assign(double.row, { id: ID, model: 'voice-en', contentType, speech: { document: 0, gaps, light: false } });
  const text = contentType === 'text/plain' ? new TextEncoder().encode(blocks.flat()[0]) : encodeDocument({ blocks });
  await double.upload(text);
  const run: Bench['run'] = (kind, more = {}) =>
    doJob(shop, { ...double.job(kind), ...more } as UploadJob, new AbortController().signal);
  return {
    ...double,
    said,
    requested,
    lengths,
    troubled,
    run,
    async finish() {
      const planned = await run('plan');
      if (planned.type !== 'done') return planned;
      double.row.pieces = Number(double.blobs.get('1/plan')?.metadata.pieces);
      for (let piece = 0; piece < double.row.pieces; piece += 1) await run('work', { piece });
      return run('merge');
    },
    async edit(piece, edition, words) {
      const name = `1/pieces/${piece}-${edition}`;
      const bytes = await sealSmall({ tenant: 'acme', upload: ID, name }, double.zone, new TextEncoder().encode(words));
      double.blobs.set(name, { bytes, metadata: {} });
      double.row.edits = { ...double.row.edits, [piece]: edition };
    },
  };
}

async function hear(bench: Bench, part: DocumentHead['part'], name = 'transcript', tenant = 'acme') {
  const head: DocumentHead = {
    v: 1,
    task: 'document',
    document: ID,
    run: 1,
    name,
    part,
    read: { url: `https://blob.test/1/${name}` },
  };
  const sent: Record<string, unknown>[] = [];
  const pieces: Uint8Array[] = [];
  const result = await answerDocument({
    context: { files: bench.shop },
    ticket: { tenant },
    answer: {
      async send(event) {
        sent.push(event);
      },
      async sendBody(bytes) {
        pieces.push(Buffer.from(bytes));
      },
    },
    head,
    signal: new AbortController().signal,
  });
  return { result, sent, body: Buffer.concat(pieces) };
}

async function read(bench: Bench, name?: string): Promise<{ about: Manifest; wav: Buffer }> {
  const about = await hear(bench, 'manifest', name);
  const audio = await hear(bench, 'audio', name);
  expect([about.result.ok, audio.result.ok]).toEqual([true, true]);
  expect(audio.sent.map(({ type }) => type)).toEqual(['answer', 'final']);
  expect(audio.sent[0]).toMatchObject({ bytes: audio.body.length, headers: { 'content-type': 'audio/wav' } });
  return { about: manifest.parse(JSON.parse(about.body.toString())), wav: audio.body };
}

/** Every segment once, in order, where the manifest says, with silence between, and nothing else. */
function check({ about, wav }: { about: Manifest; wav: Buffer }, blocks: readonly (readonly string[])[]) {
  const samples = new Int16Array(Uint8Array.from(wav.subarray(44)).buffer);
  expect(Buffer.from(wavFileOf(samples))).toEqual(wav);
  expect(about.audio.digest).toBe(`sha256:${createHash('sha256').update(wav).digest('hex')}`);
  expect(about.audio).toMatchObject({ bytes: wav.length, samples: samples.length });
  expect(about.blocks.map(({ segments }) => segments.map(({ text }) => text))).toEqual(blocks);
  let at = 0;
  for (const [index, segment] of about.blocks.flatMap(({ segments }) => segments).entries()) {
    const first = about.blocks.some(({ segments }) => segments[0]?.index === index);
    const gap = index === 0 ? 0 : ((first ? gaps.block : gaps.segment) / 1_000) * RATE;
    expect(samples.subarray(at, at + gap).every((sample) => sample === 0)).toBe(true);
    at += gap;
    expect([segment.index, segment.start_sample]).toEqual([index, at]);
    const sound = segment.spoken ? soundOf(segment.text) : new Int16Array(0);
    expect(Buffer.from(samples.slice(at, at + segment.samples).buffer)).toEqual(Buffer.from(sound.buffer));
    at += segment.samples;
  }
  expect(at).toBe(samples.length);
}

const book = [['One is here.', 'Two follows.'], ['Three stands alone.'], ['Four.', 'Five.', 'Six ends it.']];

describe('T3 a document is spoken', () => {
  it('segment by segment, and put together in order, with gaps', async () => {
    const double = await bench(book);
    expect(await double.finish()).toMatchObject({ type: 'done' });
    expect(double.said).toEqual(book.flat());
    expect(double.blobs.get('1/plan')?.metadata).toMatchObject({ pieces: '6', blocks: '2,1,3' });
    const spoken = await read(double);
    check(spoken, book);
    expect(spoken.about).toMatchObject({ project: PROJECT, document: 0, model: 'voice-en', warnings: [] });
  });

  it('waits as its tenant in the share of jobs until the job ends', async () => {
    const double = await bench([['One.']]);
    const before = Date.now();
    expect(await double.finish()).toMatchObject({ type: 'done' });
    const [requested] = double.requested;
    expect(requested).toMatchObject({ place: { class: 'batch', tenant: 'acme' }, run: double.shop.dispatcher.run });
    // The deadline is that of the job: batch work may wait a minute for a slot alone.
    expect(requested?.place?.deadline).toBeGreaterThanOrEqual(before + 50 * 60_000);
  });

  it('from plain text as from blocks', async () => {
    const double = await bench([['One. Two.\n\nThree.']], 'text/plain');
    expect(await double.finish()).toMatchObject({ type: 'done' });
    check(await read(double), [['One.', 'Two.'], ['Three.']]);
  });

  it('A21 no outcome has a word in the clear', async () => {
    const double = await bench(book);
    await double.finish();
    for (const [name, { bytes, metadata }] of double.blobs) {
      expect(Buffer.from(bytes).includes('follows'), name).toBe(false);
      expect(JSON.stringify(metadata)).not.toContain('follows');
    }
  });

  it('a change of one segment speaks that one and puts the document together again', async () => {
    const double = await bench(book);
    await double.finish();
    double.said.length = 0;
    await double.edit(2, 1, 'Three was changed.');
    expect(await double.run('work', { piece: 2, edition: 1 })).toMatchObject({ type: 'done' });
    expect(await double.run('merge', { edition: 1 })).toMatchObject({ type: 'done' });
    expect(double.said).toEqual(['Three was changed.']);
    const spoken = await read(double, 'transcript-1');
    check(spoken, [book[0] ?? [], ['Three was changed.'], book[2] ?? []]);
    expect(spoken.about.blocks[1]?.segments[0]?.edition).toBe(1);
    // Segments made before are unchanged.
    check(await read(double), book);
  });

  it('text without speech becomes silence, and the manifest says so', async () => {
    const blocks = [['One.', '* * *', 'Two.']];
    const double = await bench(blocks);
    expect(await double.finish()).toMatchObject({ type: 'done' });
    const spoken = await read(double);
    check(spoken, blocks);
    expect(spoken.about.warnings).toEqual(['unspeakable']);
    expect(spoken.about.blocks[0]?.segments.map((one) => one.spoken)).toEqual([true, false, true]);
  });

  it('done twice, or done and not heard of, it is the same document', async () => {
    const double = await bench(book);
    await double.run('plan');
    double.row.pieces = 6;
    double.troubles.push({ name: '1/results/3', trouble: 'persisted' }, { name: '1/transcript', trouble: 'persisted' });
    for (const piece of [5, 3, 3, 1, 0, 4, 2, 1]) await double.run('work', { piece });
    expect(await double.run('merge')).toMatchObject({ type: 'failed' });
    expect(await double.run('merge')).toMatchObject({ type: 'done' });
    await double.run('plan');
    check(await read(double), book);
  });

  it('an engine that fails leaves the job for later', async () => {
    const double = await bench([['One.']]);
    await double.run('plan');
    double.row.pieces = 1;
    double.troubled.push(refuse('engine_failed'));
    expect(await double.run('work', { piece: 0 })).toMatchObject({ type: 'failed' });
    expect(double.blobs.has('1/results/0')).toBe(false);
    expect(await double.run('work', { piece: 0 })).toMatchObject({ type: 'done' });
  });

  it('a result that is missing, or of another segment, is never passed over', async () => {
    const double = await bench(book);
    await double.finish();
    const second = double.blobs.get('1/results/1') ?? { bytes: new Uint8Array(), metadata: {} };
    double.blobs.delete('1/transcript');
    double.blobs.set('1/results/4', second);
    expect(await double.run('merge')).toMatchObject({ type: 'failed' });
    double.blobs.delete('1/results/4');
    expect(await double.run('merge')).toMatchObject({ type: 'refused', refusal: { reason: 'upload_parts_lost' } });
    expect(double.blobs.has('1/transcript')).toBe(false);
  });

  it('releases every result, and reads only oversized ones again', async () => {
    const sentence = (at: number) => `Sentence number ${at}.`;
    const many = Array.from({ length: 60 }, (_, at) => sentence(at));
    const double = await bench([many], undefined, { pieceSeconds: 30 });
    // Six segments of five seconds and a half: there is room for five of them and the short ones.
    for (let at = 10; at < 16; at += 1) double.lengths.set(sentence(at), 5.5 * RATE);
    await double.finish();
    double.reads.length = 0;
    double.blobs.delete('1/transcript');
    expect(await double.run('merge')).toMatchObject({ type: 'done' });
    expect(double.reading.size).toBe(0);
    const again = double.reads.filter((name, at) => double.reads.indexOf(name) < at);
    // Its first line, then for the digest, then for the copy.
    expect(again).toEqual(['1/results/15', '1/results/15']);
    expect(double.reads).toHaveLength(1 + 60 + 2);
    const { body } = await hear(double, 'manifest');
    expect(JSON.parse(body.toString()).blocks[0].segments).toHaveLength(60);
    expect(double.reading.size).toBe(0);
    double.blobs.set('1/results/59', double.blobs.get('1/results/58') ?? { bytes: new Uint8Array(), metadata: {} });
    double.blobs.delete('1/transcript');
    expect(await double.run('merge')).toMatchObject({ type: 'failed' });
    expect(double.reading.size).toBe(0);
  });

  it('segments of one cut and a plan of another are never put together', async () => {
    const double = await bench([['One. Two.', 'Three.']]);
    await double.run('plan');
    const kept = new Map(double.blobs);
    for (const name of ['1/pieces/1', '1/plan']) double.blobs.delete(name);
    await double.upload(encodeDocument({ blocks: [['One.', 'Two. Three.']] }));
    expect(await double.run('plan')).toMatchObject({ type: 'done' });
    double.row.pieces = 2;
    for (const piece of [0, 1]) await double.run('work', { piece });
    expect(await double.run('merge')).toMatchObject({ type: 'failed', refusal: { reason: 'internal' } });
    expect(double.blobs.has('1/transcript')).toBe(false);
    for (const name of ['1/results/0', '1/results/1']) double.blobs.delete(name);
    for (const [name, blob] of kept) double.blobs.set(name, blob);
    for (const piece of [0, 1]) await double.run('work', { piece });
    expect(await double.run('merge')).toMatchObject({ type: 'done' });
  });

  it('a chapter in one block', async () => {
    const many = Array.from({ length: 60 }, (_, at) => `Sentence number ${at}.`);
    const double = await bench([many]);
    expect(await double.finish()).toMatchObject({ type: 'done' });
    const { about } = await read(double);
    expect(about.blocks[0]?.segments.map(({ text }) => text)).toEqual(many);
  });
});

describe('T3 a text that cannot be spoken is refused, for a reason', () => {
  it.each([
    ['text_empty', [[' ']], 'text/plain'],
    ['text_invalid', [['bell\u0007']], 'text/plain'],
    ['text_too_long', [['x '.repeat(PROJECT_DOCUMENT_BYTES)]], 'text/plain'],
    ['text_too_long', [['x'.repeat(5_000)]], 'application/json'],
  ])('%s', async (reason, blocks, type) => {
    const double = await bench(blocks, type);
    expect(await double.run('plan')).toMatchObject({ type: 'refused', refusal: { reason } });
    expect(double.blobs.get('1/refusal')?.metadata).toMatchObject({ reason });
  });

  it('language_unknown', async () => {
    const double = await bench(book);
    double.row.language = 'zh';
    expect(await double.run('plan')).toMatchObject({ type: 'refused', refusal: { reason: 'language_unknown' } });
  });

  it('a voice that this agent does not have is for another agent', async () => {
    const double = await bench(book);
    double.row.model = 'voice-xx';
    expect(await double.run('plan')).toMatchObject({ type: 'failed', refusal: { reason: 'misdirected' } });
  });
});

describe('A21 the task `document` opens nothing for other callers', () => {
  it('another tenant, another name, a head that is none', async () => {
    const double = await bench(book);
    await double.finish();
    const reasons: (string | undefined)[] = [];
    for (const [name, tenant] of [
      ['transcript', 'other'],
      ['transcript-7', 'acme'],
      ['plan', 'acme'],
    ] as const) {
      const { result, body } = await hear(double, 'audio', name as OutcomeName, tenant);
      expect(body).toHaveLength(0);
      reasons.push(result.ok ? undefined : result.refusal.reason);
    }
    expect(reasons).toEqual(['envelope_invalid', 'speech_gone', 'seal_broken']);
  });
});
