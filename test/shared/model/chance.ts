/**
 * Most and least hits among `n` that a rate of `bound` explains, but for one time in a million: what a seeded simulation may
 * find without saying that the rate is another. Normal approximation and a bit.
 */
export const most = (bound: number, n: number): number => bound * n + 4.9 * Math.sqrt(bound * (1 - bound) * n) + 2;
export const least = (bound: number, n: number): number => bound * n - 4.9 * Math.sqrt(bound * (1 - bound) * n) - 2;
