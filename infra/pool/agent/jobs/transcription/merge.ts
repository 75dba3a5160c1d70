import { MiB } from '../../../../../shared/bytes.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import type { Final } from '../../../../../shared/speech/transcript.ts';
import { MODEL_RATE } from '../../audio/mono.ts';
import { encodeLine, LineError, readLines } from '../task/lines.ts';
import { failed, readOutcomeFile, readPlan, type Task, type Verdict, writeOutcomeFile } from '../task/task.ts';
import { Unreadable, unreadable } from '../task/unreadable.ts';
import type { Recognised } from './recognise-piece.ts';
import { type AboutLine, moveSegment, planSheet, resultLine, type TotalsLine } from './sheets.ts';

/** Twelve hours of fast speech: 200,000 words of about 100 bytes, three times over. */
const TRANSCRIPT_BYTES = 64 * MiB;

/** Less than the shortest step from one cut to another, more than what rounding does. */
const CUT_SECONDS = 0.01;

const round = (seconds: number) => Math.round(seconds * 1_000) / 1_000;

/** A recording and what was recognised in its pieces, in their order. */
export interface Merged {
  readonly seconds: number;
  readonly bytes?: number;
  /** Start of each piece, in seconds. */
  readonly starts: readonly number[];
  readonly warnings: readonly string[];
  readonly results: Iterable<Recognised> | AsyncIterable<Recognised>;
}

/** Puts results together and writes the transcript. The same results give the same transcript. */
export async function writeTranscript(task: Task, merged: Merged): Promise<Verdict> {
  const { seconds, bytes, starts } = merged;
  const { languageConfidence: confidence } = task.opened.upload;
  const lines: Uint8Array[] = [];
  const totals: TotalsLine[] = [];
  let size = 0;
  let count = 0;
  for await (const result of merged.results) {
    const offset = starts[totals.length] ?? 0;
    totals.push(result.totals);
    for (const segment of result.segments) {
      const line = encodeLine(moveSegment(segment, offset, count++));
      size += line.length;
      if (size > TRANSCRIPT_BYTES) return failed(refuse('internal', undefined, 'transcript is too long'));
      lines.push(line);
    }
  }
  const [first] = totals;
  if (!first || totals.length !== starts.length) return failed(refuse('internal', undefined, 'results are missing'));
  const revisions = new Set(totals.map(({ revision }) => revision));
  const warnings = [
    ...merged.warnings,
    ...(count === 0 ? ['no_speech'] : []),
    // A model that was replaced while the recording was worked on.
    ...(revisions.size > 1 ? ['revisions_mixed'] : []),
  ];
  const about: AboutLine = { type: 'about', v: 1, pieces: starts.map(round), warnings };
  const final: Final = {
    type: 'final',
    model: first.model,
    revision: first.revision,
    language: first.language,
    ...(confidence !== undefined && { languageConfidence: confidence }),
    durationSeconds: seconds,
    speechSeconds: round(
      Math.min(
        seconds,
        totals.reduce((sum, { speechSeconds }) => sum + speechSeconds, 0),
      ),
    ),
    segments: count,
  };
  const written = await writeOutcomeFile(task, 'transcript', [encodeLine(about), ...lines, encodeLine(final)], {
    seconds,
    pieces: starts.length,
    warnings,
    ...(bytes !== undefined && { bytes }),
  });
  return written.ok ? { type: 'done', seconds } : failed(written.refusal);
}

async function readResult(task: Task, piece: number): Promise<Recognised> {
  const file = readOutcomeFile(task, `results/${piece}`);
  if (!file.ok) throw new Unreadable(file.refusal);
  const segments: Recognised['segments'][number][] = [];
  let totals: TotalsLine | undefined;
  try {
    for await (const line of readLines(file.value.bytes, resultLine)) {
      if (line.type === 'heard') totals = line;
      else segments.push(line);
    }
  } catch (error) {
    if (!(error instanceof LineError)) throw error;
    throw new Unreadable(file.value.wrong() ?? unreadable(`result ${piece}: ${error.message}`).refusal);
  }
  const wrong = file.value.wrong();
  if (wrong) throw new Unreadable(wrong);
  if (!totals) throw unreadable(`result ${piece} has no end`);
  return { segments, totals };
}

/** Puts the results of all pieces together: one of them is held at a time. */
export async function mergeResults(task: Task): Promise<Verdict> {
  const plan = await readPlan(task, planSheet);
  if (!plan.ok) return failed(plan.refusal);
  const { pieces, seconds, warnings } = plan.value;
  async function* results() {
    for (const [piece, { samples }] of pieces.entries()) {
      const result = await readResult(task, piece);
      // Agents of two versions may cut in other places: then pieces of one must not stand at the times of the other.
      if (Math.abs(result.totals.seconds - samples / MODEL_RATE) > CUT_SECONDS)
        throw unreadable(`result ${piece} is of another cut than the plan`);
      yield result;
    }
  }
  try {
    return await writeTranscript(task, {
      seconds,
      bytes: task.opened.upload.bytes,
      starts: pieces.map(({ start }) => start / MODEL_RATE),
      warnings,
      results: results(),
    });
  } catch (error) {
    if (error instanceof Unreadable) return failed(error.refusal);
    throw error;
  }
}
