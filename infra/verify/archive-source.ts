export interface Archive {
  /** Returns bytes `from` to `to`; fewer at the end of the file. */
  slice(from: number, to: number): Promise<Uint8Array>;
  readonly size: number;
}
