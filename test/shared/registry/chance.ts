/**
 * Largest and smallest number of hits among `n` that a rate of `bound` explains, except one time in a
 * million: the range that a seeded simulation may reach. Normal approximation with a margin.
 */
export const most = (bound: number, n: number): number => bound * n + 4.9 * Math.sqrt(bound * (1 - bound) * n) + 2;
export const least = (bound: number, n: number): number => bound * n - 4.9 * Math.sqrt(bound * (1 - bound) * n) - 2;
