// The package ships no types. This is the part of its Emscripten module that `detect.ts` uses; version 0.2.0 is pinned.
declare module '@echogarden/fvad-wasm' {
  export interface FvadModule {
    readonly HEAP16: Int16Array;
    readonly HEAPU8: Uint8Array;
    _malloc(bytes: number): number;
    _free(pointer: number): void;
    _fvad_new(): number;
    _fvad_free(detector: number): void;
    _fvad_reset(detector: number): void;
    /** Aggressiveness 0 to 3; 0 when accepted. */
    _fvad_set_mode(detector: number, mode: number): number;
    _fvad_set_sample_rate(detector: number, rate: number): number;
    /** 1 voice, 0 none, -1 wrong frame length. */
    _fvad_process(detector: number, frame: number, samples: number): number;
  }
  export default function load(): Promise<FvadModule>;
}
