import { limits } from '../../../../shared/limits.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import type { StreamOptions } from '../../../../shared/stream/link.ts';
import { MODEL_RATE, type Sound } from '../sound/mono.ts';
import { createResampler, firstInput } from '../sound/resample.ts';
import type { Unit } from '../voice/cut.ts';
import { type CutterState, type CutUtterance, createLiveCutter } from '../voice/cut-live.ts';
import { UNIT_SAMPLES, UNIT_SECONDS, type VoiceDetector } from '../voice/detect.ts';
import type { Source } from './source.ts';
import { createTape } from './tape.ts';
import { createUtterance, type LiveUtterance, type UtteranceEnd } from './utterance.ts';

/** What another hearing needs to go on exactly as this one would have. */
export interface HearingState {
  /** Time of frame 0, in samples at 16 kHz: not 0 after a checkpoint whose state cannot be read. */
  readonly missing: number;
  /** Frame of the session at which the current run of units began. */
  readonly runFrame: number;
  /** Unit of the run that comes first. */
  readonly unit: number;
  /** Frames that are decoded and thrown away before it. */
  readonly skip: number;
  readonly cutter: CutterState;
  /** What the voice detector has learnt. */
  readonly voice: Uint8Array;
  readonly speechUnits: number;
}

/** A place from which another agent can take over, once everything before it is settled. */
export interface Capture {
  readonly position: number;
  /** Time of the position, in samples at 16 kHz. */
  readonly time: number;
  readonly state: HearingState;
}

/** Who is told; times are in samples at 16 kHz from the beginning of the session. */
export interface HearingEvents {
  started(at: number): void;
  ended(at: number): void;
  /** Somebody speaks; the utterance grows and is closed later. */
  utterance(utterance: LiveUtterance): void;
  checkpoint(capture: Capture): void;
}

export interface HearingParts {
  readonly source: Source;
  readonly detector: VoiceDetector;
  readonly events: HearingEvents;
  readonly options: StreamOptions;
  readonly state: HearingState;
}

const CHECKPOINT_UNITS = limits.streamCheckpointSeconds.value / UNIT_SECONDS;

/**
 * Hears a stream: bytes become units of 50 ms (A4), units become utterances. Every time comes from counting samples.
 * A run is what lies between two forced ends; units are counted from its first sample.
 */
export function createHearing({ source, detector, events, options, state }: HearingParts) {
  const { rate } = source;
  const { missing } = state;
  let { runFrame, speechUnits } = state;
  /** Units of the run so far, the one being filled not included. */
  let units = state.unit;
  let resampler = createResampler(rate, MODEL_RATE, units * UNIT_SAMPLES);
  /** Frames of the session so far. */
  let frames = runFrame + firstInput(rate, MODEL_RATE, units * UNIT_SAMPLES);
  let cutter = createLiveCutter<Int16Array>(options.endpointingMs, state.cutter);
  let { endpointingMs } = options;
  /** Decisions that `state` has brought for the units that come first. */
  const known = [...state.cutter.voiced];
  const tape = createTape();
  let utterance: LiveUtterance | undefined;
  /** Utterances that may still be read, oldest first, and the unit of the tape with which each begins. */
  const read: { readonly utterance: LiveUtterance; readonly from: number }[] = [];
  let checkpointAt = units;

  const tickOf = (frame: number) => missing + Math.round((frame * MODEL_RATE) / rate);
  let runTick = tickOf(runFrame);
  const unitTick = (number: number) => runTick + number * UNIT_SAMPLES;
  const firstHeld = () => units - cutter.held().length;

  function capture(): Capture {
    const first = firstHeld();
    const input = runFrame + firstInput(rate, MODEL_RATE, first * UNIT_SAMPLES);
    const { position, skip } = source.locate(input);
    return {
      position,
      time: Math.max(0, tickOf(input - skip)),
      state: {
        missing,
        runFrame,
        unit: first,
        skip,
        cutter: cutter.state(),
        voice: detector.save(),
        speechUnits,
      },
    };
  }

  function checkpoint() {
    checkpointAt = units;
    events.checkpoint(capture());
  }

  /** Gives the open utterance the units that became sure. */
  function grow(all: readonly Unit<Int16Array>[], count: number) {
    if (!utterance) return;
    for (let at = utterance.samples() / UNIT_SAMPLES; at < count; at++)
      utterance.grow((all[at] as Unit<Int16Array>).samples);
  }

  /** Gives back what neither the cutter holds nor an utterance. */
  function trim() {
    while (read[0]?.utterance.released()) read.shift();
    const held = tape.next() - cutter.held().length;
    tape.keep(Math.min(held, read[0]?.from ?? held));
  }

  function open() {
    utterance = createUtterance(unitTick(firstHeld()));
    read.push({ utterance, from: tape.next() - cutter.held().length });
    grow(cutter.held(), cutter.sure());
    events.utterance(utterance);
  }

  function close({ units: all, own, ending }: CutUtterance<Int16Array>) {
    const ours = all.slice(0, own);
    grow(all, all.length);
    speechUnits += ours.filter(({ voiced }) => voiced).length;
    utterance?.close({ ending, samples: own * UNIT_SAMPLES });
    const spoken = ours.findLastIndex(({ voiced }) => voiced) + 1;
    if (utterance && !cutter.speaking()) events.ended(utterance.start + spoken * UNIT_SAMPLES);
    utterance = undefined;
  }

  function onUnit(samples: Int16Array) {
    units++;
    const decided = known.shift();
    if (decided !== undefined) {
      cutter.restore({ samples, voiced: decided });
      if (known.length === 0 && cutter.speaking()) open();
      return;
    }
    const cut = cutter.push({ samples, voiced: detector.hears(samples) });
    if (cut) {
      close(cut);
      // Before the next utterance begins, or whoever goes on here would wait for its end.
      checkpoint();
      if (cutter.speaking()) open();
    } else if (utterance) grow(cutter.held(), cutter.sure());
    else if (cutter.speaking()) {
      events.started(unitTick(firstVoiced()));
      open();
    } else if (units - checkpointAt >= CHECKPOINT_UNITS) checkpoint();
  }

  /** First unit of the run of voiced ones that has just begun an utterance. */
  function firstVoiced(): number {
    const held = cutter.held();
    const silent = held.findLastIndex(({ voiced }) => !voiced);
    return firstHeld() + silent + 1;
  }

  function feed(samples: Sound) {
    tape.push(samples, onUnit);
    trim();
  }

  /** Units are counted anew from here. */
  function beginRun() {
    runFrame = frames;
    runTick = tickOf(frames);
    units = 0;
    tape.clear();
    checkpointAt = 0;
    known.length = 0;
    resampler = createResampler(rate, MODEL_RATE);
    cutter = createLiveCutter<Int16Array>(endpointingMs);
  }

  /** Everything heard so far belongs to what is being said, and that ends here. */
  function endUtterance(ending: UtteranceEnd) {
    if (cutter.speaking() && known.length > 0) open();
    feed(resampler.finish());
    const spoken = cutter.speaking();
    const silent = cutter.silentUnits();
    const rest = tape.rest();
    const last =
      rest.length > 0
        ? {
            samples: rest,
            voiced: detector.hears(Object.assign(new Int16Array(UNIT_SAMPLES), rest)),
          }
        : undefined;
    const all = cutter.end(last);
    if (!spoken) return;
    const length = all.reduce((sum, { samples }) => sum + samples.length, 0);
    grow(all, all.length);
    speechUnits += all.filter(({ voiced }) => voiced).length;
    utterance?.close({ ending, samples: length });
    utterance = undefined;
    events.ended(last?.voiced ? tickOf(frames) : unitTick(units - silent));
  }

  function forget() {
    utterance?.discard();
    utterance = undefined;
    cutter.end(undefined);
  }

  return {
    /** Refuses with `audio_invalid`. */
    push(position: number, audio: Uint8Array): Result<undefined> {
      const sound = source.push(position, audio);
      if (!sound.ok) return sound;
      frames += sound.value.length;
      feed(sound.value instanceof Int16Array ? sound.value : resampler.push(sound.value));
      return ok(undefined);
    },
    /** What is being said ends here and is transcribed, if anything is. */
    finalize() {
      if (!cutter.speaking()) return;
      endUtterance('finalize');
      beginRun();
      checkpoint();
    },
    /** What is being said is forgotten. */
    clear() {
      forget();
      beginRun();
      checkpoint();
    },
    /** The stream is over. */
    end() {
      const spoken = cutter.speaking();
      endUtterance('end');
      if (!spoken) return;
      beginRun();
      checkpoint();
    },
    options(next: StreamOptions) {
      endpointingMs = next.endpointingMs;
      cutter.options(endpointingMs);
    },
    /** Gives up what is open. */
    free() {
      forget();
      detector.free();
      source.free();
    },
    /** Samples at 16 kHz since the beginning of the session. */
    time: () => tickOf(frames),
    speechSeconds: () => speechUnits * UNIT_SECONDS,
    speaking: () => cutter.speaking(),
  };
}

export type Hearing = ReturnType<typeof createHearing>;
