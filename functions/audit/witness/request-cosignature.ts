// Requests a cosignature from one witness for one checkpoint (C2SP tlog-witness), with a proof from the size
// it has seen.
import { createHash } from 'node:crypto';
import { timeOfCosignature } from '../../../shared/audit/cosignature.ts';
import { WITNESS_REQUEST_BYTES } from '../../../shared/audit/limits.ts';
import { formatSignature, openNote, splitNote, type Verifier } from '../../../shared/audit/note.ts';
import { proveConsistency, type ReadSubtree } from '../../../shared/audit/proof.ts';
import { formatWitnessRequest, readSize, SIZE_TYPE } from '../../../shared/audit/witness-request.ts';
import { readText } from '../../http/read-text.ts';

/**
 * Requests to one witness about one checkpoint: a wrong guess of its size, its answer, and another writer's
 * checkpoint.
 */
const WITNESS_TRIES_MAX = 3;
/** Longest call of one witness; a log waits for none, but a call must end before the next ones pile up. */
const WITNESS_TIMEOUT_MS = 5_000;

export interface Witness {
  readonly verifier: Verifier;
  /** Base URL for checkpoints. */
  readonly url: string;
}

/** A signed checkpoint, and the tree below it. */
export interface Signed {
  readonly note: Uint8Array;
  readonly size: number;
  readonly read: ReadSubtree;
}

export interface WitnessAnswer {
  /** A line of a note, checked; `undefined` when it did not sign. */
  readonly line?: string;
  /** Size that the witness has seen, as far as known. */
  readonly size: number;
  /** Why it did not. */
  readonly why?: string;
  /** The checkpoint does not extend what the witness has: the size that it states, or none. */
  readonly doubt?: { readonly claimed?: number };
}

export type Get = (url: string, signal: AbortSignal) => Promise<Response>;
export type Post = (url: string, body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<Response>;

export interface CosignatureOptions {
  /** Size that the witness has seen, as far as known. */
  readonly from: number;
  /** Latest accepted time of the cosignature, in seconds since 1970. */
  readonly latest: number;
}

/** Sends a checkpoint to a witness, with a proof from the size that the witness has. */
export async function requestCosignature(
  witness: Witness,
  signed: Signed,
  post: Post,
  { from, latest }: CosignatureOptions,
): Promise<WitnessAnswer> {
  const signal = AbortSignal.timeout(WITNESS_TIMEOUT_MS);
  let old = Math.min(from, signed.size);
  for (let tries = 0; tries < WITNESS_TRIES_MAX; tries += 1) {
    const proof = await proveConsistency(old, signed.size, signed.read);
    const body = formatWitnessRequest({ old, proof, checkpoint: signed.note });
    const response = await post(`${witness.url.replace(/\/$/, '')}/add-checkpoint`, body, signal);
    const text = await readText(response, WITNESS_REQUEST_BYTES);
    if (response.status === 200) return take(witness.verifier, signed, text, latest);
    if (response.status === 422) return { size: old, why: 'refuses', doubt: {} };
    const isSize = response.status === 409 && response.headers.get('content-type') === SIZE_TYPE;
    const size = isSize ? readSize(text?.replace(/\n$/, '')) : undefined;
    if (size === undefined) return { size: old, why: `answered ${response.status}` };
    // The witness has seen a newer checkpoint: another process sent it, or this log was longer once.
    if (size > signed.size) return { size, why: 'is ahead', doubt: { claimed: size } };
    old = size;
  }
  return { size: old, why: 'stands nowhere' };
}

/**
 * Fetches the newest checkpoint of a log that a witness has seen. Ours serve it; the specification does not
 * require it.
 */
export async function fetchWitnessed({ url }: Witness, origin: string, get: Get): Promise<Uint8Array | undefined> {
  const name = createHash('sha256').update(origin).digest('hex');
  const signal = AbortSignal.timeout(WITNESS_TIMEOUT_MS);
  const response = await get(`${url.replace(/\/$/, '')}/${name}/checkpoint`, signal);
  const text = await readText(response, WITNESS_REQUEST_BYTES);
  return response.status === 200 && text !== undefined ? new TextEncoder().encode(text) : undefined;
}

/**
 * The witness must have signed the checkpoint itself: an empty line before its signature would make a longer
 * text.
 */
async function take(
  verifier: Verifier,
  signed: Signed,
  text: string | undefined,
  latest: number,
): Promise<WitnessAnswer> {
  const { note, size } = signed;
  const whole = new TextEncoder().encode(`${new TextDecoder().decode(note)}${text ?? ''}`);
  const opened = await openNote(whole, [verifier]);
  const [signature] = opened?.good ?? [];
  if (!opened || !signature) return { size, why: 'signed with another key' };
  if (opened.text !== splitNote(note)?.text) return { size, why: 'signed another text' };
  if (timeOfCosignature(signature.signature) > latest) return { size, why: 'signed in the future' };
  return { size, line: formatSignature(signature) };
}
