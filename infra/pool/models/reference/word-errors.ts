/** Words to insert, leave out or exchange to get from one to the other. */
export function wordErrors(heard: readonly string[], spoken: readonly string[]): number {
  let row = Array.from({ length: spoken.length + 1 }, (_, index) => index);
  for (const [i, word] of heard.entries()) {
    const next = [i + 1];
    for (const [j, other] of spoken.entries()) {
      next.push(Math.min(row[j + 1]! + 1, next[j]! + 1, row[j]! + (word === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1)!;
}
