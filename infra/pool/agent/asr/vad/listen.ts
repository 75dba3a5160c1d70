import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import type { SoundBlock } from '../../../../../shared/speech/format.ts';
import { createMono } from '../../audio/mono.ts';
import { createCutter, type Utterance } from './cut.ts';
import { createVoiceDetector, UNIT_SAMPLES, type VoiceDetector } from './detect.ts';
import type { Opening } from './opening.ts';
import { createUnits } from './units.ts';

/** Totals of a recording once all of it was heard. */
export interface RecordingTotals {
  /** Length in seconds, counted in samples of the file; of separate channels the sum. */
  readonly seconds: number;
  readonly speechSeconds: number;
  /** Number of separate channels; absent where they were mixed. */
  readonly channels?: number;
}

/** `opening` comes once, when the opening is full or the recording has ended. */
export type ListenEvent =
  | { type: 'opening' }
  | { type: 'utterance'; utterance: Utterance }
  | { type: 'totals'; totals: RecordingTotals };

/** Cuts one channel into utterances, holding one of them. `channel` is its number where channels are separate. */
function createChannel(
  detector: VoiceDetector,
  channel: number | undefined,
  isNarrow: boolean,
  opening: Opening | undefined,
) {
  const mono = createMono(isNarrow);
  const cutter = createCutter();
  const units = createUnits();
  let speechSeconds = 0;
  /** Samples of the recording so far, without the silence that fills the last unit. */
  let recorded = 0;

  function announce({ start, samples, speechSeconds: seconds }: Utterance): Utterance {
    speechSeconds += seconds;
    return { start, samples: samples.subarray(0, recorded - start), speechSeconds: seconds, channel };
  }

  function* cut(samples: Float32Array): Generator<Utterance> {
    for (const unit of units.push(samples)) {
      const voiced = detector.hasVoice(unit);
      opening?.push(unit, voiced, channel);
      const utterance = cutter.push({ samples: unit, voiced });
      if (utterance) yield announce(utterance);
    }
  }

  function* record(samples: Float32Array): Generator<Utterance> {
    recorded += samples.length;
    yield* cut(samples);
  }

  return {
    *push(block: SoundBlock): Generator<Utterance> {
      for (const samples of mono.push(block)) yield* record(samples);
    },
    *finish(): Generator<Utterance> {
      yield* record(mono.finish());
      const { length } = units.rest();
      // The last unit is filled up with silence, which is cut off again: no word may end after the recording.
      if (length > 0) yield* cut(new Float32Array(UNIT_SAMPLES - length));
      const last = cutter.finish();
      if (last) yield announce(last);
    },
    totals(): RecordingTotals {
      const seconds = mono.seconds();
      return { seconds, speechSeconds: Math.min(seconds, speechSeconds) };
    },
    free: detector.free,
  };
}

type Channel = ReturnType<typeof createChannel>;

function sumOf(channels: readonly Channel[], isSeparate: boolean): RecordingTotals {
  const all = channels.map((channel) => channel.totals());
  return {
    seconds: all.reduce((sum, { seconds }) => sum + seconds, 0),
    speechSeconds: all.reduce((sum, { speechSeconds }) => sum + speechSeconds, 0),
    ...(isSeparate && { channels: channels.length }),
  };
}

/** Passes the utterances of a channel on as events. */
function* eventsOf(utterances: Iterable<Utterance>): Generator<Result<ListenEvent>> {
  for (const utterance of utterances) yield ok({ type: 'utterance', utterance });
}

/**
 * Turns decoded sound into utterances, holding one block, and one utterance of each channel. Channels are mixed unless
 * they are separate; a narrow one has half the band. Fills `opening` while it listens. Ends with `totals` or a refusal.
 */
export async function* listen(
  sound: AsyncIterable<Result<SoundBlock>>,
  isSeparate = false,
  isNarrow = false,
  opening?: Opening,
): AsyncGenerator<Result<ListenEvent>> {
  const channels: Channel[] = [];
  let isOpening = opening !== undefined;
  try {
    for await (const block of sound) {
      if (!block.ok) return yield block;
      const { rate, channels: samples } = block.value;
      const parts = isSeparate ? samples.map((one) => ({ rate, channels: [one] })) : [block.value];
      for (const i of channels.length === 0 ? parts.keys() : []) {
        channels.push(createChannel(await createVoiceDetector(), isSeparate ? i : undefined, isNarrow, opening));
      }
      if (parts.length !== channels.length) {
        return yield no(refuse('audio_unsupported', { found: 'sound whose number of channels changes' }));
      }
      for (const [i, part] of parts.entries()) yield* eventsOf(channels[i]?.push(part) ?? []);
      if (isOpening && opening?.isFull) {
        isOpening = false;
        yield ok({ type: 'opening' });
      }
    }
    for (const channel of channels) yield* eventsOf(channel.finish());
    if (isOpening) yield ok({ type: 'opening' });
    yield ok({ type: 'totals', totals: sumOf(channels, isSeparate) });
  } finally {
    for (const channel of channels) channel.free();
  }
}
