/**
 * Ids of sequences: none twice from one start of the agent, and hardly one that an earlier start has used. Numbers,
 * since that is what models that look at them mostly want, and safe ones, since they travel in JSON. `random`: 0 to 1.
 */
export function createSequenceIds(random: number): () => number {
  let last = Math.floor(random * 2 ** 52);
  return () => {
    last++;
    return last;
  };
}
