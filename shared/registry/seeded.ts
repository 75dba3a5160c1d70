/**
 * Returns a generator of numbers from 0 to 1, reproducible from the seed, so that any reader can recompute a
 * verdict. Chris Doty-Humphrey's sfc32; not for secrets.
 */
export function seeded(seed: number): () => number {
  let a = 0;
  let b = seed | 0;
  let c = 0x9e3779b9 | 0;
  let count = 1;
  const next = (): number => {
    const sum = (((a + b) | 0) + count) | 0;
    count = (count + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let round = 0; round < 12; round += 1) next();
  return next;
}
