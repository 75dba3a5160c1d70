// Description of a part before its start.

export type PartName = string;

export type Part = {
  name: PartName;
  /** The TypeScript file that the child process runs, relative to the repository. */
  entry: string;
  /** Complete project environment of the part; variables of the shell are not inherited. */
  env: Record<string, string>;
  /** Parts that must be ready before this one starts; all others start together. */
  after: PartName[];
  /** Readiness signal: the part sends `ready` over IPC, or this URL answers with a 2xx status. */
  ready: 'message' | { url: string };
  /** Bound on readiness, after which the part counts as dead, ms; a minute by default. */
  readyMsMax?: number;
  /** Order of stopping; equal numbers stop together. The edge stops first, stores last. */
  stopTurn: number;
};
