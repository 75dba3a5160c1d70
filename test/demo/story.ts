import type { Fleet } from './fleet.ts';
import type { Operator } from './operate.ts';
import type { Traffic } from './traffic.ts';

export const figures = { promoted: 0, slow_caught: 0, wer_caught: 0, quantised: 0, failed_requests: 0 };

/** State shared by all scenes. */
export interface Story {
  readonly fleet: Fleet;
  readonly operator: Operator;
  readonly traffic: Traffic;
  readonly figures: typeof figures;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

export const short = (revision: string): string => revision.slice(7, 19);
