import fvad, { type FvadModule } from '@echogarden/fvad-wasm';
import type { Sound } from '../../audio/mono.ts';

/** Samples of one decision of the WebRTC detector: 10 ms at 16 kHz. */
export const FRAME_SAMPLES = 160;
/** Samples of one unit, the grain in which speech is cut: 50 ms (A4). */
export const UNIT_SAMPLES = 800;
export const UNIT_SECONDS = UNIT_SAMPLES / 16_000;

/** Frames of a unit that must hold voice: 2 of 5, as cutting off a soft onset costs more than a little noise. */
const FRAMES_NEEDED = 2;
/** Aggressiveness 0 to 3. The recogniser stands noise; it cannot bring back a word that was cut away. */
const MODE = 1;

/**
 * Units of digital silence after which the detector cannot change any more by hearing another: its filters have rung
 * down and its hangover (at most 14 frames) is over. Silence below its least energy teaches it nothing.
 */
const SETTLED_UNITS = 20;

let loading: Promise<FvadModule> | undefined;

/**
 * The part of libfvad's `VadInstT` that changes while it listens: filters, noise and speech models, hangover. What
 * follows in the structure are its settings, which are never taken from outside.
 */
const ADAPTED_BYTES = 708;
/** Those, and the count of silent units. */
export const MEMORY_BYTES = ADAPTED_BYTES + 1;

export interface VoiceDetector {
  /** Whether a unit of `UNIT_SAMPLES` samples (16 kHz) holds voice. The detector adapts to what it has heard. */
  hasVoice(unit: Sound): boolean;
  /** Returns its memory, `MEMORY_BYTES`: another detector continues from it with the same decisions. */
  save(): Uint8Array;
  free(): void;
}

/** Less than one step of the detector's 16 bits: it would get zeros only. It mostly knows at the first sample. */
function isDigitalSilence(unit: Sound): boolean {
  const most = unit instanceof Int16Array ? 1 : 1 / 0x7fff;
  for (let i = 0; i < unit.length; i++) {
    const sample = unit[i] as number;
    if (sample > most || sample < -most) return false;
  }
  return true;
}

/** As the detector takes it, scaled to 0x7fff. A loop, as this runs for all sound of all streams. */
function writeFloats(heap: Int16Array, at: number, unit: Float32Array): void {
  for (let i = 0; i < unit.length; i++) {
    const sample = unit[i] as number;
    heap[at + i] = (sample > 1 ? 1 : sample < -1 ? -1 : sample) * 0x7fff;
  }
}

/** Writes samples of 16 bits with the scaling of the float path, which takes one off every loudness but 0. */
function writeInts(heap: Int16Array, at: number, unit: Int16Array): void {
  for (let i = 0; i < unit.length; i++) {
    const sample = unit[i] as number;
    heap[at + i] = sample - ((sample >> 31) | (-sample >>> 31));
  }
}

/**
 * The WebRTC voice detector (libfvad): one per recording. `memory` is what another one has saved. Any bytes of that
 * length are safe: they address no memory, and a detector that fails on them starts over.
 */
export async function createVoiceDetector(memory?: Uint8Array): Promise<VoiceDetector> {
  loading ??= fvad();
  const module = await loading;
  const detector = module._fvad_new();
  const buffer = module._malloc(UNIT_SAMPLES * 2);
  const setUp = () => {
    if (module._fvad_set_mode(detector, MODE) !== 0 || module._fvad_set_sample_rate(detector, 16_000) !== 0) {
      throw new Error('the voice detector refuses its settings');
    }
  };
  setUp();
  /** Units of digital silence in a row. */
  let silent = 0;
  if (memory?.length === MEMORY_BYTES) {
    module.HEAPU8.set(memory.subarray(0, ADAPTED_BYTES), detector);
    silent = memory[ADAPTED_BYTES] ?? 0;
  }
  return {
    hasVoice(unit) {
      if (unit.length !== UNIT_SAMPLES) throw new RangeError('not a unit');
      silent = isDigitalSilence(unit) ? silent + 1 : 0;
      if (silent > SETTLED_UNITS) return false;
      // Read the heap each time: its memory may have grown.
      const heap = module.HEAP16;
      if (unit instanceof Int16Array) writeInts(heap, buffer >> 1, unit);
      else writeFloats(heap, buffer >> 1, unit);
      let voiced = 0;
      try {
        for (let start = 0; start < UNIT_SAMPLES; start += FRAME_SAMPLES) {
          if (module._fvad_process(detector, buffer + 2 * start, FRAME_SAMPLES) === 1) voiced++;
        }
      } catch {
        // libfvad asserts that its likelihoods stay in range; numbers that no detector has saved can leave it.
        module._fvad_reset(detector);
        setUp();
        return true;
      }
      return voiced >= FRAMES_NEEDED;
    },
    save() {
      const saved = new Uint8Array(MEMORY_BYTES);
      saved.set(module.HEAPU8.subarray(detector, detector + ADAPTED_BYTES));
      saved[ADAPTED_BYTES] = Math.min(silent, SETTLED_UNITS + 1);
      return saved;
    },
    free() {
      module._free(buffer);
      module._fvad_free(detector);
    },
  };
}
