// Facts of a leaf that the verifier needs. Leaves of newer versions have more, and count in the tree.
import { isObject } from './read-manifest.ts';

export interface LeafFacts {
  readonly leaf: Readonly<Record<string, unknown>>;
  readonly id: string;
  readonly type: string;
  readonly p: string;
  readonly ep: string;
  readonly pseq: number;
  readonly tn: string | undefined;
  readonly tseq: number | undefined;
  /** Time in the log, ms since 1970. */
  readonly time: number;
  readonly sd: Readonly<Record<string, string>> | undefined;
}

const isNumber = (value: unknown): value is number => Number.isSafeInteger(value);

export function readLeafFacts(text: string): LeafFacts | undefined {
  let leaf: unknown;
  try {
    leaf = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(leaf)) return undefined;
  const { id, type, p, ep, pseq, tn, tseq, t, sd } = leaf;
  if (typeof id !== 'string' || typeof type !== 'string' || typeof p !== 'string' || typeof ep !== 'string')
    return undefined;
  if (!isNumber(pseq) || !isObject(t) || !isNumber(t.seq)) return undefined;
  if (tn !== undefined && (typeof tn !== 'string' || !isNumber(tseq))) return undefined;
  if (sd !== undefined && !(isObject(sd) && Object.values(sd).every((one) => typeof one === 'string')))
    return undefined;
  return {
    ...{ leaf, id, type, p, ep, pseq, tn, time: t.seq },
    tseq: tn === undefined ? undefined : (tseq as number),
    sd: sd as Readonly<Record<string, string>> | undefined,
  };
}
