// Publishes signed checkpoints. The first stored signatures of a size count, since some algorithms never sign
// twice alike. A longer checkpoint replaces a shorter one and, at equal size, one with more witnesses
// replaces one with fewer; never the reverse.
import { type Checkpoint, formatCheckpoint, readCheckpoint, signCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { formatSignature, type Signer, splitNote } from '../../../shared/audit/note.ts';
import { AUDIT_RACE_TRIES_MAX } from '../limits.ts';
import { checkpointName, signedName } from './log-names.ts';
import type { LogStore } from './log-store.ts';

/** A log by zone and year, and the store that it lies in. */
export interface LogPlace<Store = LogStore> {
  readonly store: Store;
  readonly zone: string;
  readonly year: number;
}

export interface Place extends LogPlace {
  /** The first must sign, the others where they can. */
  readonly signers: readonly Signer[];
}

/** Reads the head of a signed checkpoint without verifying signatures. */
export function headOf(note: Uint8Array): Checkpoint & { readonly signatures: number } {
  const parts = splitNote(note);
  const checkpoint = parts && readCheckpoint(parts.text);
  if (!checkpoint) throw new Error('what is published is no checkpoint');
  return { ...checkpoint, signatures: parts.signatures.length };
}

/**
 * Returns the first signed checkpoint of a size, or signs it. A retry does not sign again: a key may be in a
 * vault.
 */
export async function signOnce({ store, signers, zone, year }: Place, checkpoint: Checkpoint): Promise<Uint8Array> {
  const name = signedName(zone, year, checkpoint.size);
  const before = await store.read('log', name);
  const note = before ? undefined : await signedBy(checkpoint, signers);
  if (note && (await store.create('log', name, note))) return note;
  const stored = before ?? (await store.read('log', name));
  const same = stored && splitNote(stored.bytes)?.text === formatCheckpoint(checkpoint);
  if (!stored || !same) throw new Error(`log ${name}: something else is there`);
  return stored.bytes;
}

/** A key that cannot sign now says so itself; the log does not stand still for it. */
async function signedBy(checkpoint: Checkpoint, [first, ...others]: readonly Signer[]): Promise<Uint8Array> {
  const text = new TextEncoder().encode(formatCheckpoint(checkpoint));
  const lines = others.map(async ({ name, keyId, sign }) => {
    try {
      return formatSignature({ name, keyId, signature: await sign(text) });
    } catch {
      return '';
    }
  });
  const note = await signCheckpoint(checkpoint, ...(first ? [first] : []));
  return new TextEncoder().encode(`${note}${(await Promise.all(lines)).join('')}`);
}

/** Ranks checkpoints of one size. */
type Worth = (note: Uint8Array) => Promise<number>;

const countSignatures: Worth = async (note) => headOf(note).signatures;

/** Puts a checkpoint before older ones, and those of its size that are worth less, under that name of the area `state`. */
export async function putForward(
  store: LogStore,
  name: string,
  note: Uint8Array,
  worth: Worth = countSignatures,
): Promise<void> {
  const { size } = headOf(note);
  for (let tries = 0; tries < AUDIT_RACE_TRIES_MAX; tries += 1) {
    const stored = await store.read('state', name);
    const there = stored && headOf(stored.bytes).size;
    if (stored && there === size && (await worth(stored.bytes)) >= (await worth(note))) return;
    if (there !== undefined && there > size) return;
    const done = stored ? store.replace('state', name, note, stored.version) : store.create('state', name, note);
    if (await done) return;
  }
  throw new Error(`${name}: the checkpoint of ${size} could not be published`);
}

/** The size of the published checkpoint; 0 when there is none. */
export async function publishedSize({ store, zone, year }: LogPlace): Promise<number> {
  const stored = await store.read('state', checkpointName(zone, year));
  return stored ? headOf(stored.bytes).size : 0;
}
