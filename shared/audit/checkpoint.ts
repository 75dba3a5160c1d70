// A checkpoint (C2SP tlog-checkpoint): origin, size and root of a log.
import { fromBase64, toBase64 } from '../base64.ts';
import { openNote, type Signer, signNote, type Verifier } from './note.ts';
import { HASH_BYTES, type Hash } from './tree.ts';

export interface Checkpoint {
  /** Name of the log: a URL without scheme, also the name of its key. */
  readonly origin: string;
  readonly size: number;
  readonly root: Hash;
}

export const formatCheckpoint = ({ origin, size, root }: Checkpoint): string =>
  `${origin}\n${size}\n${toBase64(root)}\n`;

/** Parses a checkpoint. Lines after the third are extensions and ignored. */
export function readCheckpoint(text: string): Checkpoint | undefined {
  const [origin = '', count = '', base64 = '', ...rest] = text.split('\n');
  const root = fromBase64(base64);
  const size = Number(count);
  const extensions = rest.slice(0, -1);
  if (origin === '' || !/^(0|[1-9]\d*)$/.test(count) || !Number.isSafeInteger(size)) return undefined;
  if (root?.length !== HASH_BYTES || rest.at(-1) !== '' || extensions.includes('')) return undefined;
  return { origin, size, root };
}

/** The signed text has no time and no random part, so one size has one text. */
export const signCheckpoint = (checkpoint: Checkpoint, ...signers: readonly Signer[]): Promise<string> =>
  signNote(formatCheckpoint(checkpoint), signers);

/** Verifies and parses a checkpoint signed by that key. */
export async function openCheckpoint(note: Uint8Array, verifier: Verifier): Promise<Checkpoint | undefined> {
  const opened = await openNote(note, [verifier]);
  const checkpoint = opened && readCheckpoint(opened.text);
  return checkpoint?.origin === verifier.name ? checkpoint : undefined;
}
