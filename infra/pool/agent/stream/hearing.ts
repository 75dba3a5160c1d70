import { ok, type Result } from '../../../../shared/result.ts';
import type { StreamOptions } from '../../../../shared/stream/link.ts';
import type { Unit } from '../asr/vad/cut.ts';
import { type CutterState, type CutUtterance, createLiveCutter } from '../asr/vad/cut-live.ts';
import { UNIT_SAMPLES, UNIT_SECONDS, type VoiceDetector } from '../asr/vad/detect.ts';
import { MODEL_RATE, type Sound } from '../audio/mono.ts';
import { createResampler, firstInput } from '../audio/resample.ts';
import type { Source } from './source.ts';
import { createTape } from './tape.ts';
import { createUtterance, type LiveUtterance, type UtteranceEnd } from './utterance.ts';

/** Interval of checkpoints in silence: the edge's replay buffer stays small. */
const STREAM_CHECKPOINT_S = 1;

/** State from which another hearing continues exactly as this one would. */
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
  /** Memory of the voice detector. */
  readonly voice: Uint8Array;
  readonly speechUnits: number;
}

/** A place from which another agent can take over, once everything before it is settled. */
export interface Capture {
  readonly position: number;
  /** Time of the position, in samples at 16 kHz. */
  readonly time: number;
  /** Number of the track in a container that describes it before the position. */
  readonly track: number | undefined;
  readonly state: HearingState;
}

/** Listener of a hearing; times are in samples at 16 kHz from the beginning of the session. */
export interface HearingEvents {
  started(at: number): void;
  ended(at: number): void;
  /** Speech began; the utterance grows and is closed later. */
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

const CHECKPOINT_UNITS = STREAM_CHECKPOINT_S / UNIT_SECONDS;

/**
 * Hears a stream: bytes become units of 50 ms (A4), units become utterances. Every time comes from counting samples.
 * A run is what lies between two forced ends; units are counted from its first sample.
 */
export class Hearing {
  readonly #source: Source;
  readonly #detector: VoiceDetector;
  readonly #events: HearingEvents;
  readonly #rate: number;
  readonly #missing: number;
  #runFrame: number;
  /** Time of the run's first sample, in samples at 16 kHz. */
  #runTick: number;
  #speechUnits: number;
  /** Units of the run so far, the one being filled not included. */
  #units: number;
  #resampler: ReturnType<typeof createResampler>;
  /** Frames of the session so far. */
  #frames: number;
  #cutter: ReturnType<typeof createLiveCutter<Int16Array>>;
  #endpointingMs: StreamOptions['endpointingMs'];
  /** Decisions that `state` has brought for the units that come first. */
  readonly #known: boolean[];
  readonly #tape = createTape();
  #utterance: LiveUtterance | undefined;
  /** Utterances that may still be read, oldest first, and the unit of the tape with which each begins. */
  readonly #read: { readonly utterance: LiveUtterance; readonly from: number }[] = [];
  #checkpointAt: number;

  constructor({ source, detector, events, options, state }: HearingParts) {
    const { rate } = source;
    const { runFrame, unit } = state;
    this.#source = source;
    this.#detector = detector;
    this.#events = events;
    this.#rate = rate;
    this.#missing = state.missing;
    this.#runFrame = runFrame;
    this.#runTick = this.#tickOf(runFrame);
    this.#speechUnits = state.speechUnits;
    this.#units = unit;
    this.#resampler = createResampler(rate, MODEL_RATE, unit * UNIT_SAMPLES);
    this.#frames = runFrame + firstInput(rate, MODEL_RATE, unit * UNIT_SAMPLES);
    this.#cutter = createLiveCutter<Int16Array>(options.endpointingMs, state.cutter);
    this.#endpointingMs = options.endpointingMs;
    this.#known = [...state.cutter.voiced];
    this.#checkpointAt = unit;
  }

  /** Refuses with `audio_invalid` and `audio_live_unsupported`. */
  push(position: number, audio: Uint8Array): Result<undefined> {
    const sound = this.#source.push(position, audio);
    if (!sound.ok) return sound;
    this.#frames += sound.value.length;
    this.#feed(sound.value instanceof Int16Array ? sound.value : this.#resampler.push(sound.value));
    return ok(undefined);
  }

  /** Ends the current utterance, if any, and transcribes it. */
  finalize() {
    if (!this.#cutter.speaking()) return;
    this.#endUtterance('finalize');
    this.#beginRun();
    this.#checkpoint();
  }

  /** Drops the current utterance. */
  clear() {
    this.#forget();
    this.#beginRun();
    this.#checkpoint();
  }

  /** Ends the stream and transcribes the current utterance. Refuses with `audio_truncated`. */
  end(): Result<undefined> {
    const spoken = this.#cutter.speaking();
    this.#endUtterance('end');
    if (spoken) {
      this.#beginRun();
      this.#checkpoint();
    }
    return this.#source.end?.() ?? ok(undefined);
  }

  options(next: StreamOptions) {
    this.#endpointingMs = next.endpointingMs;
    this.#cutter.options(this.#endpointingMs);
  }

  /** Gives up what is open. */
  free() {
    this.#forget();
    this.#detector.free();
    this.#source.free();
  }

  /** Samples at 16 kHz since the beginning of the session. */
  time(): number {
    return this.#tickOf(this.#frames);
  }

  speechSeconds(): number {
    return this.#speechUnits * UNIT_SECONDS;
  }

  speaking(): boolean {
    return this.#cutter.speaking();
  }

  /** Returns the time of a frame of the session, in samples at 16 kHz. */
  #tickOf(frame: number): number {
    return this.#missing + Math.round((frame * MODEL_RATE) / this.#rate);
  }

  /** Returns the time at which a unit of the run begins. */
  #unitTick(number: number): number {
    return this.#runTick + number * UNIT_SAMPLES;
  }

  #firstHeld(): number {
    return this.#units - this.#cutter.held().length;
  }

  #capture(): Capture {
    const first = this.#firstHeld();
    const input = this.#runFrame + firstInput(this.#rate, MODEL_RATE, first * UNIT_SAMPLES);
    const { position, skip, track } = this.#source.locate(input);
    return {
      position,
      time: Math.max(0, this.#tickOf(input - skip)),
      track,
      state: {
        missing: this.#missing,
        runFrame: this.#runFrame,
        unit: first,
        skip,
        cutter: this.#cutter.state(),
        voice: this.#detector.save(),
        speechUnits: this.#speechUnits,
      },
    };
  }

  #checkpoint() {
    this.#checkpointAt = this.#units;
    this.#events.checkpoint(this.#capture());
  }

  /** Gives the open utterance the units that became sure. */
  #grow(all: readonly Unit<Int16Array>[], count: number) {
    if (!this.#utterance) return;
    for (let at = this.#utterance.samples() / UNIT_SAMPLES; at < count; at++)
      this.#utterance.grow((all[at] as Unit<Int16Array>).samples);
  }

  /** Gives back what neither the cutter holds nor an utterance. */
  #trim() {
    while (this.#read[0]?.utterance.released()) this.#read.shift();
    const held = this.#tape.next() - this.#cutter.held().length;
    this.#tape.keep(Math.min(held, this.#read[0]?.from ?? held));
  }

  #open() {
    this.#utterance = createUtterance(this.#unitTick(this.#firstHeld()));
    this.#read.push({ utterance: this.#utterance, from: this.#tape.next() - this.#cutter.held().length });
    this.#grow(this.#cutter.held(), this.#cutter.sure());
    this.#events.utterance(this.#utterance);
  }

  #close({ units: all, own, ending }: CutUtterance<Int16Array>) {
    const ours = all.slice(0, own);
    this.#grow(all, all.length);
    this.#speechUnits += ours.filter(({ voiced }) => voiced).length;
    this.#utterance?.close({ ending, samples: own * UNIT_SAMPLES });
    const spoken = ours.findLastIndex(({ voiced }) => voiced) + 1;
    if (this.#utterance && !this.#cutter.speaking()) this.#events.ended(this.#utterance.start + spoken * UNIT_SAMPLES);
    this.#utterance = undefined;
  }

  readonly #onUnit = (samples: Int16Array) => {
    this.#units++;
    const decided = this.#known.shift();
    if (decided !== undefined) {
      this.#cutter.restore({ samples, voiced: decided });
      if (this.#known.length === 0 && this.#cutter.speaking()) this.#open();
      return;
    }
    const cut = this.#cutter.push({ samples, voiced: this.#detector.hasVoice(samples) });
    if (cut) {
      this.#close(cut);
      // Before the next utterance begins: an agent that resumes here must not wait for its end.
      this.#checkpoint();
      if (this.#cutter.speaking()) this.#open();
    } else if (this.#utterance) this.#grow(this.#cutter.held(), this.#cutter.sure());
    else if (this.#cutter.speaking()) {
      this.#events.started(this.#unitTick(this.#firstVoiced()));
      this.#open();
    } else if (this.#units - this.#checkpointAt >= CHECKPOINT_UNITS) this.#checkpoint();
  };

  /** First unit of the run of voiced ones that has just begun an utterance. */
  #firstVoiced(): number {
    const held = this.#cutter.held();
    const silent = held.findLastIndex(({ voiced }) => !voiced);
    return this.#firstHeld() + silent + 1;
  }

  #feed(samples: Sound) {
    this.#tape.push(samples, this.#onUnit);
    this.#trim();
  }

  /** Begins a run: units are counted from here. */
  #beginRun() {
    this.#runFrame = this.#frames;
    this.#runTick = this.#tickOf(this.#frames);
    this.#units = 0;
    this.#tape.clear();
    this.#checkpointAt = 0;
    this.#known.length = 0;
    this.#resampler = createResampler(this.#rate, MODEL_RATE);
    this.#cutter = createLiveCutter<Int16Array>(this.#endpointingMs);
  }

  /** Ends the open utterance with all audio received so far. */
  #endUtterance(ending: UtteranceEnd) {
    if (this.#cutter.speaking() && this.#known.length > 0) this.#open();
    this.#feed(this.#resampler.finish());
    const spoken = this.#cutter.speaking();
    const silent = this.#cutter.silentUnits();
    const rest = this.#tape.rest();
    const last =
      rest.length > 0
        ? {
            samples: rest,
            voiced: this.#detector.hasVoice(Object.assign(new Int16Array(UNIT_SAMPLES), rest)),
          }
        : undefined;
    const all = this.#cutter.end(last);
    if (!spoken) return;
    const length = all.reduce((sum, { samples }) => sum + samples.length, 0);
    this.#grow(all, all.length);
    this.#speechUnits += all.filter(({ voiced }) => voiced).length;
    this.#utterance?.close({ ending, samples: length });
    this.#utterance = undefined;
    this.#events.ended(last?.voiced ? this.#tickOf(this.#frames) : this.#unitTick(this.#units - silent));
  }

  #forget() {
    this.#utterance?.discard();
    this.#utterance = undefined;
    this.#cutter.end(undefined);
  }
}
