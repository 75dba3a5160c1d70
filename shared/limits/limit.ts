/** Who stops what goes over a bound. */
type Enforcer = 'edge' | 'gate' | 'roster' | 'agent' | 'engine' | 'functions' | 'local' | 'client' | 'builder';

export interface Limit {
  readonly value: number;
  readonly unit: 'byte' | 'ms' | 's' | 'count' | 'Hz' | 'character' | 'ratio';
  readonly by: Enforcer;
  /** What the bound protects, and why it has this size. */
  readonly why: string;
}

export const KiB = 1024;
export const MiB = 1024 * KiB;
