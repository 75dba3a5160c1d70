import { ok, type Result } from '../../../../../shared/result.ts';
import type { SoundBlock } from '../../../../../shared/speech/format.ts';
import { createMono } from '../../audio/mono.ts';
import { createCutter, type Utterance } from './cut.ts';
import { UNIT_SAMPLES, type VoiceDetector } from './detect.ts';
import { createUnits } from './units.ts';

/** Totals of a recording once all of it was heard. */
export interface RecordingTotals {
  /** Length in seconds, counted in samples of the file. */
  readonly seconds: number;
  readonly speechSeconds: number;
}

export type ListenEvent = { type: 'utterance'; utterance: Utterance } | { type: 'totals'; totals: RecordingTotals };

/** Turns decoded sound into utterances, holding one utterance and one block. Ends with `totals` or a refusal. */
export async function* listen(
  sound: AsyncIterable<Result<SoundBlock>>,
  detector: VoiceDetector,
): AsyncGenerator<Result<ListenEvent>> {
  const mono = createMono();
  const cutter = createCutter();
  const units = createUnits();
  let speechSeconds = 0;
  /** Samples of the recording so far, without the silence that fills the last unit. */
  let recorded = 0;

  function* cut(samples: Float32Array): Generator<Utterance> {
    for (const unit of units.push(samples)) {
      const utterance = cutter.push({ samples: unit, voiced: detector.hasVoice(unit) });
      if (utterance) yield utterance;
    }
  }

  function announce({ start, samples, speechSeconds: seconds }: Utterance): Result<ListenEvent> {
    speechSeconds += seconds;
    const utterance = { start, samples: samples.subarray(0, recorded - start), speechSeconds: seconds };
    return ok({ type: 'utterance', utterance });
  }

  function* record(samples: Float32Array): Generator<Utterance> {
    recorded += samples.length;
    yield* cut(samples);
  }

  for await (const block of sound) {
    if (!block.ok) return yield block;
    for (const samples of mono.push(block.value)) for (const utterance of record(samples)) yield announce(utterance);
  }
  for (const utterance of record(mono.finish())) yield announce(utterance);
  const { length } = units.rest();
  if (length > 0) {
    // The last unit is filled up with silence, which is cut off again: no word may end after the recording.
    for (const utterance of cut(new Float32Array(UNIT_SAMPLES - length))) yield announce(utterance);
  }
  const last = cutter.finish();
  if (last) yield announce(last);
  const seconds = mono.seconds();
  yield ok({ type: 'totals', totals: { seconds, speechSeconds: Math.min(seconds, speechSeconds) } });
}
