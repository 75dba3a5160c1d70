/** Returns the whole number that decimal digits spell, as queries have it; `undefined` for any other text. */
export function readWhole(text: string): number | undefined {
  const number = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}
