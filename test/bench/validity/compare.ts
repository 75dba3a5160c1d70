// Predicted waits beside measured ones, by class.
import { classes, type RequestClass } from '../../../shared/tenant/claims.ts';
import type { Waits } from './predict.ts';
import type { Arrival } from './scenarios.ts';

/** One replay of a scenario, and its simulations with several seeds of the edge's choices. */
export interface Round {
  readonly arrivals: readonly Arrival[];
  readonly measured: Waits;
  readonly predicted: readonly Waits[];
}

export interface Summary {
  /** Waits of the served requests, ms. */
  readonly meanMs: number;
  readonly p90Ms: number;
  /** Share of requests without an answer. */
  readonly refused: number;
}

export interface Comparison {
  readonly class: RequestClass | 'all';
  readonly requests: number;
  readonly predicted: Summary;
  readonly measured: Summary;
}

function summarise(waits: Waits): Summary {
  const served = waits.filter((wait) => wait !== undefined).sort((one, other) => one - other);
  return {
    meanMs: served.reduce((sum, wait) => sum + wait, 0) / served.length,
    p90Ms: served[Math.floor(served.length * 0.9)] ?? Number.NaN,
    refused: 1 - served.length / waits.length,
  };
}

/** Compares the counted requests of all rounds, and those of each class that occurs. */
export function compare(rounds: readonly Round[]): Comparison[] {
  const kinds = ['all', ...classes] as const;
  return kinds.flatMap((kind) => {
    const isOf = ({ counted, class: name }: Arrival) => counted && (kind === 'all' || name === kind);
    const of = ({ arrivals }: Round, waits: Waits) => waits.filter((_, at) => isOf(arrivals[at] as Arrival));
    const measured = rounds.flatMap((round) => of(round, round.measured));
    if (measured.length === 0) return [];
    const predicted = rounds.flatMap((round) => round.predicted.flatMap((waits) => of(round, waits)));
    const both = { predicted: summarise(predicted), measured: summarise(measured) };
    return [{ class: kind, requests: measured.length, ...both }];
  });
}
