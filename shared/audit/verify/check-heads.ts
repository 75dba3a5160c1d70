// Verifies the checkpoints of a bundle: signed by the log, consistent, and witnessed.

import { LeftPart } from '../bundle/cover.ts';
import { type Checkpoint, readCheckpoint } from '../checkpoint.ts';
import { type Judged, latestAt, openJudge } from '../judge.ts';
import { equalBytes } from '../tree.ts';
import type { OpenBundle } from './open-bundle.ts';
import type { Findings } from './verdict.ts';

export interface Heads {
  /** Ascending by size. */
  readonly checkpoints: readonly Checkpoint[];
  readonly end: Judged;
  /** Signed note of the last checkpoint. */
  readonly note: string;
}

export async function readHeads(
  { manifest, policy, read }: OpenBundle,
  now: number,
  findings: Findings,
): Promise<Heads | undefined> {
  const wrong = (text: string) => void findings.add('checkpoints', 'invalid', text);
  const judge = await openJudge(policy);
  const judged: { readonly judged: Judged; readonly note: string }[] = [];
  for (const { path, size } of manifest.checkpoints) {
    const bytes = await read(path);
    if (!bytes) return undefined;
    const one = await judge(bytes, latestAt(now));
    if (!one) return wrong(`${path} is not signed by the log of the policy`);
    if (one.checkpoint.origin !== manifest.log.origin) return wrong(`${path} is of ${one.checkpoint.origin}`);
    if (one.checkpoint.size !== size) return wrong(`${path} is of ${one.checkpoint.size} entries, not of ${size}`);
    if (judged.some((before) => before.judged.checkpoint.size >= size)) return wrong(`${path} does not come last`);
    judged.push({ judged: one, note: new TextDecoder().decode(bytes) });
  }
  const end = judged.at(-1);
  if (!end) return wrong('there is no checkpoint');
  return { checkpoints: judged.map((one) => one.judged.checkpoint), end: end.judged, note: end.note };
}

/** Checks the witnesses of the last checkpoint. A policy without witnesses makes it unwitnessed. */
export function checkWitnesses({ end }: Heads, quorum: string, findings: Findings): void {
  if (end.quorum && end.witnesses.length > 0) return;
  const seen = end.witnesses.map(({ name }) => name).join(', ') || 'nobody';
  const wanted = quorum === 'none' ? 'the policy asks for no witness' : `the policy asks for ${quorum}`;
  findings.add('checkpoints', 'unwitnessed', `${wanted}; the last checkpoint was witnessed by ${seen}`);
}

/** Parses a checkpoint that the reader has from another source and verifies. */
export function readKnownHead(note: Uint8Array): Checkpoint | undefined {
  const text = new TextDecoder().decode(note);
  const split = text.lastIndexOf('\n\n');
  return readCheckpoint(split < 0 ? text : text.slice(0, split + 1));
}

/** Roots of the log at former sizes, compared as hashes arrive. */
export class Growth {
  readonly left = new LeftPart();
  readonly #heads: Heads;
  readonly #known: Checkpoint | undefined;
  readonly #findings: Findings;
  #compared = false;

  constructor(heads: Heads, known: Checkpoint | undefined, findings: Findings) {
    this.#heads = heads;
    this.#known = known;
    this.#findings = findings;
  }

  /** Compares the roots at the current size; called between two subtrees. */
  look(): void {
    const { size } = this.left;
    for (const checkpoint of this.#heads.checkpoints) {
      if (checkpoint.size !== size || equalBytes(checkpoint.root, this.left.root())) continue;
      const last = checkpoint === this.#heads.checkpoints.at(-1);
      const text = last
        ? `entries and proofs do not lead to the root of the log of ${size}`
        : `the log of ${size} entries is not the beginning of the last one`;
      this.#findings.add(last ? 'inclusion' : 'consistency', 'invalid', text);
    }
    const known = this.#known;
    if (known?.size !== size) return;
    this.#compared = true;
    if (known.origin !== this.#heads.end.checkpoint.origin || equalBytes(known.root, this.left.root())) return;
    this.#findings.add('consistency', 'diverged', `the log of ${size} entries is not the one of the known head`);
  }

  end(): void {
    const { origin, size } = this.#heads.end.checkpoint;
    if (this.left.size !== size)
      this.#findings.add('inclusion', 'invalid', `entries and proofs end at ${this.left.size}, the log at ${size}`);
    const known = this.#known;
    if (known && known.origin !== origin)
      this.#findings.add('consistency', 'diverged', `the known head is of ${known.origin}`);
    else if (known && !this.#compared && known.size > 0) {
      const text = `the known head of ${known.size} entries cannot be compared: ask for an export with known_size ${known.size}`;
      this.#findings.add('consistency', 'incomplete', text);
    }
  }
}
