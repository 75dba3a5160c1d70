/** The half of a model that recognises live streams. */
export interface LiveModel {
  /** Its name at the engine. */
  readonly model: string;
  /** Samples of a window, and from the begin of one window to that of the next. */
  readonly windowSamples: number;
  readonly hopSamples: number;
}
