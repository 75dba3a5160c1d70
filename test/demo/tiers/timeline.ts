// Tier of each model over time, from the log lines of the agent.
import { z } from 'zod';
import { jsonOf } from '../../../shared/json-text.ts';

/** Tiers, the fastest first. */
export const tiers = ['gpu', 'ram', 'ssd', 'blob'] as const;
export type Tier = (typeof tiers)[number];

const moved = z.object({
  event: z.literal('tier-moved'),
  at: z.iso.datetime(),
  model: z.string(),
  act: z.enum(['load', 'drop']),
  tier: z.enum(['gpu', 'ram', 'ssd']),
});

export interface Span {
  readonly tier: Tier;
  /** Epoch ms. */
  readonly from: number;
  to: number;
}

/** Follows moves: a model in several tiers is in the fastest of them. */
export class Timeline {
  readonly #spans = new Map<string, Span[]>();
  readonly #held = new Map<string, Set<Tier>>();
  moves = 0;

  constructor(models: readonly string[], now: number) {
    for (const model of models) this.#spans.set(model, [{ tier: 'blob', from: now, to: now }]);
  }

  /** Takes a log line of the agent. */
  take(line: string): void {
    const read = moved.safeParse(jsonOf(line));
    if (!read.success) return;
    const { model, act, tier } = read.data;
    const spans = this.#spans.get(model);
    if (!spans) return;
    const at = Date.parse(read.data.at);
    this.moves += 1;
    const held = this.#held.get(model) ?? new Set<Tier>(['blob']);
    this.#held.set(model, held);
    if (act === 'load') held.add(tier);
    else held.delete(tier);
    const fastest = tiers.find((one) => held.has(one)) ?? 'blob';
    const last = spans.at(-1);
    if (!last || last.tier === fastest) return;
    last.to = at;
    spans.push({ tier: fastest, from: at, to: at });
  }

  tierAt(model: string, at: number): Tier {
    return this.#spans.get(model)?.findLast(({ from }) => from <= at)?.tier ?? 'blob';
  }

  /** Returns the spans of each model until `end`. */
  close(end: number): ReadonlyMap<string, readonly Span[]> {
    for (const spans of this.#spans.values()) {
      const last = spans.at(-1);
      if (last) last.to = end;
    }
    return this.#spans;
  }
}
