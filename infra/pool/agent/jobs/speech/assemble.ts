import { createHash } from 'node:crypto';
import { inEdition } from '../../../../../shared/jobs/paths.ts';
import { projectOf } from '../../../../../shared/jobs/project-id.ts';
import type { Manifest } from '../../../../../shared/jobs/project-manifest.ts';
import { createEnvelope, sealedBytes } from '../../../../../shared/seal/envelope.ts';
import { sealInto } from '../../../../../shared/seal/envelope-stream.ts';
import { SEAL_SEGMENT_BYTES } from '../../../../../shared/seal/limits.ts';
import { wavHeader } from '../../../../../shared/speech/wav-header.ts';
import { MODEL_RATE } from '../../audio/mono.ts';
import { nodeAead } from '../../identity/aead.ts';
import type { BlobContent } from '../../storage/storage.ts';
import { encodeLine, RESULT_LINE_BYTES } from '../task/lines.ts';
import { factsOf, failed, readOutcomeFile, readPlan, type Task, type Verdict, writeContent } from '../task/task.ts';
import { Unreadable, unreadable } from '../task/unreadable.ts';
import { UPLOAD_PIECE_S } from '../transcription/split.ts';
import { type DocumentPlan, documentPlan, fingerprint, type SpokenLine, splitLine, spokenLine } from './sheets.ts';

/** Samples that are kept from counting to copying: as many as of one piece of a recording. */
const KEPT_SAMPLES = MODEL_RATE * UPLOAD_PIECE_S;

/**
 * Makes one sound of all segments, in their order. The manifest, with the length and the digest of the sound, stands
 * before it: what is too long to be kept meanwhile is read again.
 */
export async function assembleDocument(task: Task): Promise<Verdict> {
  const plan = await readPlan(task, documentPlan);
  if (!plan.ok) return failed(plan.refusal);
  try {
    const { manifest, parts } = await count(task, plan.value);
    const line = encodeLine(manifest);
    const name = inEdition('transcript', task.job.edition ?? 0);
    const content = async (): Promise<BlobContent> => {
      const envelope = await createEnvelope(factsOf(task, `${task.opened.upload.run}/${name}`), task.zone);
      const length = sealedBytes(envelope.head.length, line.length + manifest.audio.bytes);
      return { length, body: await sealInto(envelope, streamOf(join(task, line, parts)), nodeAead) };
    };
    const { seconds, bytes } = manifest.audio;
    const warnings = manifest.warnings.filter((_, at) => at < 16);
    const written = await writeContent(task, name, content, { seconds, bytes, warnings });
    return written.ok ? { type: 'done', seconds } : failed(written.refusal);
  } catch (error) {
    if (error instanceof Unreadable) return failed(error.refusal);
    throw error;
  }
}

/** Either silence of so many samples, or a segment. */
type Part = { readonly silence: number } | SegmentPart;

interface SegmentPart {
  readonly piece: number;
  readonly line: SpokenLine;
  /** Its samples, while there is room for them. */
  readonly kept?: Uint8Array;
}

/** Reads what each segment is, and keeps the samples of as many as there is room for. */
async function lookAt(task: Task, { blocks, texts }: DocumentPlan): Promise<SegmentPart[]> {
  const parts: SegmentPart[] = [];
  const total = blocks.reduce((sum, one) => sum + one);
  let capacity = task.shop.pieceSamples ?? KEPT_SAMPLES;
  for (let piece = 0; piece < total; piece += 1) {
    const { line, pcm, close } = await readSegment(task, piece);
    if (line.samples > capacity) {
      await close();
      parts.push({ piece, line });
    } else {
      capacity -= line.samples;
      const chunks: Uint8Array[] = [];
      for await (const chunk of pcm) chunks.push(chunk);
      parts.push({ piece, line, kept: Buffer.concat(chunks) });
    }
    const edition = task.opened.upload.edits?.[piece] ?? 0;
    // Agents of two versions may cut a text in other places: their segments are not put together.
    if (edition === 0 && texts && texts[piece] !== fingerprint(line.text))
      throw unreadable(`result ${piece} is of another cut than the plan`);
  }
  return parts;
}

async function count(task: Task, plan: DocumentPlan): Promise<{ manifest: Manifest; parts: Part[] }> {
  const { upload } = task.opened;
  const { gaps = { segment: 0, block: 0 }, rate = 1, voice, document = 0 } = upload.speech ?? {};
  const segmentsOf = await lookAt(task, plan);
  const lines = segmentsOf.map(({ line }) => line);
  const [first] = lines;
  if (!first) throw unreadable('segments are missing');
  const { sampleRate, model } = first;
  const parts: Part[] = [];
  const spoken: Manifest['blocks'] = [];
  let at = 0;
  let begun = 0;
  for (const [index, size] of plan.blocks.entries()) {
    const segments: Manifest['blocks'][number]['segments'] = [];
    for (const [within, part] of segmentsOf.slice(begun, begun + size).entries()) {
      const { piece, line } = part;
      if (line.sampleRate !== sampleRate) throw unreadable('segments of several sample rates');
      if (piece > 0) at += silence(parts, within === 0 ? gaps.block : gaps.segment, sampleRate);
      segments.push(entryOf(piece, line, at, upload.edits?.[piece] ?? 0));
      parts.push(part);
      at += line.samples;
    }
    begun += size;
    spoken.push({ index, segments });
  }
  const hash = createHash('sha256').update(wavHeader({ rate: sampleRate, bytes: 2 * at }));
  for await (const chunk of sound(task, parts)) hash.update(chunk);
  const revisions = [...new Set(lines.map(({ revision }) => revision))];
  const manifest: Manifest = {
    v: 1,
    project: projectOf(upload.id),
    document,
    edition: task.job.edition ?? 0,
    model,
    revisions,
    ...(voice !== undefined && { voice }),
    rate,
    ...(upload.language !== undefined && { language: upload.language }),
    audio: {
      content_type: 'audio/wav',
      sample_rate: sampleRate,
      bits: 16,
      channels: 1,
      samples: at,
      seconds: at / sampleRate,
      bytes: 2 * at + wavHeader({ rate: sampleRate }).length,
      digest: `sha256:${hash.digest('hex')}`,
    },
    gaps: { segment_ms: gaps.segment, block_ms: gaps.block },
    blocks: spoken,
    warnings: [
      ...(lines.some((line) => !line.spoken) ? ['unspeakable'] : []),
      // A model that was replaced while the document was worked on.
      ...(revisions.length > 1 ? ['revisions_mixed'] : []),
    ],
  };
  return { manifest, parts };
}

/** Samples of silence that were added. */
function silence(parts: Part[], milliseconds: number, sampleRate: number): number {
  const samples = Math.round((milliseconds / 1_000) * sampleRate);
  if (samples > 0) parts.push({ silence: samples });
  return samples;
}

const entryOf = (index: number, line: SpokenLine, at: number, edition: number) => ({
  index,
  text: line.text,
  start_sample: at,
  samples: line.samples,
  start: at / line.sampleRate,
  end: (at + line.samples) / line.sampleRate,
  edition,
  digest: line.digest,
  spoken: line.spoken,
});

interface Segment {
  readonly line: SpokenLine;
  /** Its samples; throws when there are not as many as the line says. */
  readonly pcm: AsyncGenerator<Uint8Array>;
  /** For who does not read them. */
  close(): Promise<void>;
}

async function readSegment(task: Task, piece: number): Promise<Segment> {
  const name = inEdition(`results/${piece}` as const, task.opened.upload.edits?.[piece] ?? 0);
  const file = readOutcomeFile(task, name);
  if (!file.ok) throw new Unreadable(file.refusal);
  const { line, rest, close } = await splitLine(file.value.bytes, RESULT_LINE_BYTES);
  const parsed = spokenLine.safeParse(line);
  if (!parsed.success) {
    await close();
    throw new Unreadable(file.value.wrong() ?? unreadable(`result ${piece}`).refusal);
  }
  async function* pcm() {
    let left = 2 * (parsed.data?.samples ?? 0);
    for await (const chunk of rest) {
      left -= chunk.length;
      if (left < 0) break;
      yield chunk;
    }
    const wrong = file.ok ? file.value.wrong() : undefined;
    if (wrong) throw new Unreadable(wrong);
    if (left !== 0) throw unreadable(`result ${piece} has another length than it says`);
  }
  return { line: parsed.data, pcm: pcm(), close };
}

/** Samples of everything, as they follow each other. */
async function* sound(task: Task, parts: readonly Part[]): AsyncGenerator<Uint8Array> {
  const most = SEAL_SEGMENT_BYTES;
  for (const part of parts) {
    if ('kept' in part) {
      for (let from = 0; from < part.kept.length; from += most) yield part.kept.subarray(from, from + most);
      continue;
    }
    if ('piece' in part) {
      const segment = await readSegment(task, part.piece);
      if (segment.line.digest !== part.line.digest) {
        await segment.close();
        throw unreadable(`result ${part.piece} is not what it was`);
      }
      yield* segment.pcm;
      continue;
    }
    for (let left = 2 * part.silence; left > 0; left -= most) yield new Uint8Array(Math.min(left, most));
  }
}

async function* join(task: Task, line: Uint8Array, parts: readonly Part[]): AsyncGenerator<Uint8Array> {
  const last = parts.findLast((part) => 'piece' in part);
  const rate = last && 'line' in last ? last.line.sampleRate : 0;
  const samples = parts.reduce((sum, part) => sum + ('piece' in part ? part.line.samples : part.silence), 0);
  yield line;
  yield wavHeader({ rate, bytes: 2 * samples });
  yield* sound(task, parts);
}

/** Returns a stream that generates on demand. */
function streamOf(chunks: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
