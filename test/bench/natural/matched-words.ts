/** Returns the positions in `wanted` of the words that an alignment of least edit distance finds in `given`. */
export function matchedWords(wanted: readonly string[], given: readonly string[]): number[] {
  const rows = wanted.map(() => new Uint32Array(given.length + 1));
  const cost = (i: number, j: number) => (i < 0 ? j : (rows[i]?.[j] as number));
  const replaced = (i: number, j: number) => cost(i - 1, j - 1) + (wanted[i] === given[j - 1] ? 0 : 1);
  for (const [i, row] of rows.entries()) {
    row[0] = i + 1;
    for (let j = 1; j <= given.length; j++)
      row[j] = Math.min(replaced(i, j), cost(i - 1, j) + 1, (row[j - 1] as number) + 1);
  }
  const matched: number[] = [];
  let j = given.length;
  for (let i = wanted.length - 1; i >= 0 && j > 0; ) {
    if (cost(i, j) === replaced(i, j)) {
      if (wanted[i] === given[j - 1]) matched.unshift(i);
      i--;
      j--;
    } else if (cost(i, j) === cost(i - 1, j) + 1) i--;
    else j--;
  }
  return matched;
}
