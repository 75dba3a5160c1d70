import fvad, { type FvadModule } from '@echogarden/fvad-wasm';

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
  hears(unit: Float32Array): boolean;
  /** What it has learnt, `MEMORY_BYTES`: another detector goes on from there with the same decisions. */
  save(): Uint8Array;
  free(): void;
}

/** Less than one step of 16 bits: the detector would get zeros only. A loop, as this runs for all sound of all streams. */
function isDigitalSilence(unit: Float32Array): boolean {
  for (let i = 0; i < unit.length; i++) if (Math.abs(unit[i] as number) * 0x7fff >= 1) return false;
  return true;
}

/**
 * The WebRTC voice detector (libfvad): one per recording. `memory` is what another one has saved; any bytes of that
 * length are safe, since they are numbers of filters and nothing that addresses memory.
 */
export async function createVoiceDetector(memory?: Uint8Array): Promise<VoiceDetector> {
  loading ??= fvad();
  const module = await loading;
  const detector = module._fvad_new();
  const frame = module._malloc(FRAME_SAMPLES * 2);
  if (module._fvad_set_mode(detector, MODE) !== 0 || module._fvad_set_sample_rate(detector, 16_000) !== 0) {
    throw new Error('the voice detector refuses its settings');
  }
  /** Units of digital silence in a row. */
  let silent = 0;
  if (memory?.length === MEMORY_BYTES) {
    module.HEAPU8.set(memory.subarray(0, ADAPTED_BYTES), detector);
    silent = memory[ADAPTED_BYTES] ?? 0;
  }
  return {
    hears(unit) {
      silent = isDigitalSilence(unit) ? silent + 1 : 0;
      if (silent > SETTLED_UNITS) return false;
      let voiced = 0;
      for (let start = 0; start + FRAME_SAMPLES <= unit.length; start += FRAME_SAMPLES) {
        // Read the heap anew each time: its memory may have grown.
        const heap = module.HEAP16;
        for (let i = 0; i < FRAME_SAMPLES; i++) {
          const sample = unit[start + i] as number;
          heap[(frame >> 1) + i] = (sample > 1 ? 1 : sample < -1 ? -1 : sample) * 0x7fff;
        }
        if (module._fvad_process(detector, frame, FRAME_SAMPLES) === 1) voiced++;
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
      module._free(frame);
      module._fvad_free(detector);
    },
  };
}
