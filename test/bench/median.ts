// Summaries of several rounds of a benchmark.

/** The mean of the two in the middle when their number is even; `NaN` of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return (at((sorted.length - 1) >> 1) + at(sorted.length >> 1)) / 2;
}

/** The round in the middle, whole, so that what is shown beside each other belongs together; of two the lower. */
export function middle<T>(rounds: readonly T[], by: (round: T) => number): T {
  const sorted = [...rounds].sort((one, other) => by(one) - by(other));
  const found = sorted[(sorted.length - 1) >> 1];
  if (found === undefined) throw new Error('no round');
  return found;
}

/** Returns the median of the rounds' ratios, with their minimum and maximum. */
export function ratioFigures(name: string, ratios: readonly number[]): Record<string, number> {
  if (ratios.length === 0) return {};
  return { [name]: median(ratios), [`${name}_low`]: Math.min(...ratios), [`${name}_high`]: Math.max(...ratios) };
}
