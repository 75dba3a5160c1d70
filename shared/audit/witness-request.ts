// Request of a log to a witness (C2SP tlog-witness, add-checkpoint): the size that the witness last saw, the consistency
// proof from there, and the checkpoint.
//
//   POST {witness}/add-checkpoint   this → 200 signature lines, or 409 and the size that the witness has seen

import { fromBase64, toBase64 } from '../base64.ts';
import { PROOF_HASHES_MAX } from './limits.ts';
import { HASH_BYTES, type Hash } from './tree.ts';

export interface WitnessRequest {
  /** Size of the last cosigned checkpoint; 0 for none. */
  readonly old: number;
  /** Consistency proof from there to the checkpoint. */
  readonly proof: readonly Hash[];
  /** The signed note. */
  readonly checkpoint: Uint8Array;
}

/** Type of the answer 409, which is a size and a line break. */
export const SIZE_TYPE = 'text/x.tlog.size';

export function formatWitnessRequest({ old, proof, checkpoint }: WitnessRequest): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode([`old ${old}`, ...proof.map(toBase64), '', ''].join('\n'));
  const whole = new Uint8Array(head.length + checkpoint.length);
  whole.set(head);
  whole.set(checkpoint, head.length);
  return whole;
}

/**
 * Parses a request without verifying it; `undefined` for anything that `formatWitnessRequest` would not
 * write.
 */
export function readWitnessRequest(body: Uint8Array): WitnessRequest | undefined {
  const end = body.findIndex((byte, at) => byte === 0x0a && body[at + 1] === 0x0a);
  if (end < 0) return undefined;
  // Non-ASCII becomes characters that no line below accepts.
  const [first = '', ...lines] = new TextDecoder().decode(body.subarray(0, end)).split('\n');
  const old = readSize(/^old (\d+)$/.exec(first)?.[1]);
  if (old === undefined || lines.length > PROOF_HASHES_MAX) return undefined;
  const proof = lines.map(fromBase64);
  if (!proof.every((hash): hash is Uint8Array<ArrayBuffer> => hash?.length === HASH_BYTES)) return undefined;
  return { old, proof, checkpoint: body.slice(end + 2) };
}

/** Parses a canonical decimal size. */
export function readSize(digits: string | undefined): number | undefined {
  const size = Number(digits);
  return digits !== undefined && Number.isSafeInteger(size) && size >= 0 && String(size) === digits ? size : undefined;
}
