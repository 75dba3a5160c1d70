// A log as an edge serves it, made of any leaves.

import { RightEdge } from '../../../functions/audit/log/right-edge.ts';
import { signCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { encodeLeaf, type Leaf } from '../../../shared/audit/leaf.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { formatVerifierKey } from '../../../shared/audit/note-key.ts';

export const ORIGIN = 'audit.example/eu/2026';
export const PREFIX = '/v1/audit/log/eu/2026';
export const log = await openSigningKey(new Uint8Array(32).fill(5));
export const other = await openSigningKey(new Uint8Array(32).fill(6));
export const seer = await openSigningKey(new Uint8Array(32).fill(7));
export const vkey = formatVerifierKey(ORIGIN, log.publicKey);

export const at = (index: number) => `017f22e2-79b0-7cc3-98c4-${index.toString(16).padStart(12, '0')}`;
export const time = { origin: 1, edge: 2, seq: 3 };
export const event = (index: number, pseq: number, tseq: number): Leaf => {
  const from = { by: 'edge', p: 'gate/dev/eu', ep: at(0), pseq };
  return { v: 1, id: at(index), type: 'inference.complete', ...from, tn: 'dev', tseq, req: `r${index}`, t: time };
};
export const opening: Leaf = { v: 1, id: at(0), type: 'shard.open', by: 'log', p: 'log', ep: ORIGIN, pseq: 1, t: time };
export const leavesOf = (count: number): Leaf[] => [
  opening,
  ...Array.from({ length: count - 1 }, (_, index) => event(index + 1, index + 1, index + 1)),
];

/** Its files by their path below the log, with a signed checkpoint. */
export async function filesOf(
  leaves: readonly Leaf[],
  signer = log,
  origin = ORIGIN,
): Promise<Map<string, Uint8Array>> {
  const edge = new RightEdge();
  for (const leaf of leaves) edge.append(encodeLeaf(leaf));
  const files = new Map(edge.files().map(({ path: name, bytes }) => [name, bytes]));
  const checkpoint = { origin, size: edge.size, root: edge.root() };
  return files.set('checkpoint', new TextEncoder().encode(await signCheckpoint(checkpoint, signer.signer(origin))));
}
