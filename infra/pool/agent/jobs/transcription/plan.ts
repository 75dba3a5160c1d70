import { UPLOAD_S } from '../../../../../shared/jobs/limits.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { SEAL_SEGMENT_BYTES } from '../../../../../shared/seal/limits.ts';
import { type SoundFormat, sniffBytes, sniffFormat } from '../../../../../shared/speech/format.ts';
import { decodeSound } from '../../audio/decode.ts';
import { createMono, MODEL_RATE } from '../../audio/mono.ts';
import { wavOf } from '../../audio/wav.ts';
import { encodeLine } from '../task/lines.ts';
import { failed, readUpload, type Task, type Verdict, writeOutcomeFile } from '../task/task.ts';
import { createAdviser } from './advice.ts';
import { writeTranscript } from './merge.ts';
import { chooseModel, isSenders, recognisePiece } from './recognise-piece.ts';
import type { PlanSheet } from './sheets.ts';
import { createSplitter, type Piece } from './split.ts';

/** Passes bytes on and looks at the first of them. */
function createSniffer() {
  let head: Uint8Array = new Uint8Array(0);
  return {
    async *pass(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of bytes) {
        if (head.length < sniffBytes) head = Buffer.concat([head, chunk.subarray(0, sniffBytes - head.length)]);
        yield chunk;
      }
    },
    format: (): SoundFormat | undefined => sniffFormat(head),
  };
}

/** In small chunks: who joins the first two copies little. */
async function* inChunks(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  const most = SEAL_SEGMENT_BYTES;
  for (const part of parts) for (let at = 0; at < part.length; at += most) yield part.subarray(at, at + most);
}

/**
 * Returns the longest accepted recording, in seconds: the bound of the grant, and at most that of any upload.
 */
export const longest = ({ secondsMax }: { readonly secondsMax?: number | undefined }): number =>
  Math.min(UPLOAD_S, secondsMax ?? Number.POSITIVE_INFINITY);

/**
 * Looks at a file and cuts it into pieces; one that is a single piece is recognised at once. Everything passes through:
 * what is held is one piece.
 */
export async function planUpload(task: Task): Promise<Verdict> {
  // Checked before hours are decoded for a language that no model has.
  const chosen = chooseModel(task);
  if (!chosen.ok) return isSenders(chosen.refusal) ? { type: 'refused', ...chosen } : failed(chosen.refusal);
  const upload = readUpload(task);
  if (!upload.ok) return failed(upload.refusal);
  const { bytes, wrong, source } = upload.value;
  const sniffer = createSniffer();
  const mono = createMono();
  const splitter = createSplitter(task.shop.pieceSamples);
  const adviser = createAdviser();
  const pieces: PlanSheet['pieces'] = [];
  let rate = 0;

  async function writePiece({ start, samples }: Piece) {
    const written = await writeOutcomeFile(task, `pieces/${pieces.length}`, wavOf(samples), {
      seconds: samples.length / MODEL_RATE,
    });
    pieces.push({ start, samples: samples.length });
    return written;
  }

  async function take(samples: Float32Array) {
    adviser.push(samples);
    for (const piece of splitter.push(samples)) {
      const written = await writePiece(piece);
      if (!written.ok) return written.refusal;
    }
    return undefined;
  }

  for await (const block of decodeSound(sniffer.pass(bytes), task.signal, longest(task.opened.upload))) {
    const refusal = wrong() ?? (block.ok ? undefined : block.refusal);
    if (refusal) return isSenders(refusal) ? { type: 'refused', refusal } : failed(refusal);
    if (!block.ok) continue;
    rate ||= block.value.rate;
    for (const samples of mono.push(block.value)) {
      const trouble = await take(samples);
      if (trouble) return failed(trouble);
    }
  }
  const broken = wrong();
  if (broken) return isSenders(broken) ? { type: 'refused', refusal: broken } : failed(broken);
  const trouble = await take(mono.finish());
  if (trouble) return failed(trouble);

  const last = splitter.finish();
  if (last.start + last.samples.length === 0) return { type: 'refused', refusal: refuse('audio_empty') };
  const facts = { seconds: mono.seconds(), bytes: source.bytes() };
  const warnings = adviser.advise({ format: sniffer.format(), rate });
  if (pieces.length === 0) {
    const recognised = await recognisePiece(task, chosen.value, inChunks(wavOf(last.samples)));
    if (!recognised.ok) return failed(recognised.refusal);
    const { segments, totals } = recognised.value;
    return writeTranscript(task, { ...facts, starts: [0], warnings, results: [{ segments, totals }] });
  }
  const written = await writePiece(last);
  if (!written.ok) return failed(written.refusal);
  const sheet: PlanSheet = { v: 1, pieces, seconds: facts.seconds, warnings };
  const planned = await writeOutcomeFile(task, 'plan', [encodeLine(sheet)], {
    ...facts,
    pieces: pieces.length,
    warnings,
  });
  return planned.ok ? { type: 'done', seconds: facts.seconds } : failed(planned.refusal);
}
