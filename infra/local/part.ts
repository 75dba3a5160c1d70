// What the supervisor knows about a part before starting it.

export type PartName = string;

export type Part = {
  name: PartName;
  /** The TypeScript file that the child process runs, relative to the repository. */
  entry: string;
  /** Files without which the part cannot run; a part whose code is not there yet is left out, and that is said. */
  needs: string[];
  /** Everything the part is told. It gets no other project variable, so that a shell cannot change the stack by accident. */
  env: Record<string, string>;
  /** Parts that must be ready before this one starts; everything else starts together. */
  after: PartName[];
  /** How readiness is learned: the part says `ready` over IPC, or this URL answers with a 2xx status. */
  ready: 'message' | { url: string };
  /** How long that may take before the part counts as dead, in milliseconds; default a minute. */
  readyMsMax?: number;
  /** Parts stop in this order; those with the same number stop together. The front door closes first, stores last. */
  stopTurn: number;
};
