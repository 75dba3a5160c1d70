/** Component that enforces a limit. */
type Enforcer = 'edge' | 'gate' | 'roster' | 'agent' | 'engine' | 'functions' | 'local' | 'client' | 'builder';

export interface Limit {
  readonly value: number;
  readonly unit: 'byte' | 'ms' | 's' | 'count' | 'Hz' | 'character' | 'ratio';
  readonly by: Enforcer;
  /** Reason for the limit and for its size. */
  readonly why: string;
}

export const KiB = 1024;
export const MiB = 1024 * KiB;
