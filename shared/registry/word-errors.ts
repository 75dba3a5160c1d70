/**
 * Returns the least number of words to insert, delete or replace to turn `reference` into `hypothesis`. The caller
 * decides what counts as a word: characters where a script has no spaces.
 */
export function countWordErrors(reference: readonly string[], hypothesis: readonly string[]): number {
  let row = Uint32Array.from({ length: hypothesis.length + 1 }, (_, at) => at);
  for (const [line, word] of reference.entries()) {
    const next = new Uint32Array(row.length);
    next[0] = line + 1;
    for (let at = 1; at < row.length; at += 1) {
      const replaced = (row[at - 1] as number) + (hypothesis[at - 1] === word ? 0 : 1);
      next[at] = Math.min(replaced, (row[at] as number) + 1, (next[at - 1] as number) + 1);
    }
    row = next;
  }
  return row[hypothesis.length] as number;
}
