// Opens the hidden values of entries. A disclosure counts only if its leaf commits to it.
import { z } from 'zod';
import { checkDisclosure } from '../../../shared/audit/commitment.ts';
import { readLeaf } from '../../../shared/audit/leaf.ts';
import { jsonOf } from '../../../shared/json-text.ts';
import { openHidden } from './hide.ts';
import { findSidecarFiles, type SidecarFile, type SidecarPlace } from './sidecar-files.ts';
import type { SidecarKeys } from './sidecar-keys.ts';

/**
 * Disclosures of an entry by field name; `erased` when the keys are destroyed; `undefined` when it hides
 * nothing or the stored values do not match.
 */
export type Hidden = Readonly<Record<string, string>> | 'erased' | undefined;

const sidecarFile = z.object({ v: z.literal(1), from: z.number().int(), hidden: z.array(z.string().nullable()) });

/** Reads the sidecar of one log, range by range. Holds one file at a time: the entries of one commit. */
export class SidecarReader {
  readonly #place: SidecarPlace;
  readonly #keys: SidecarKeys;
  #open: { readonly name: string; readonly hidden: readonly (string | null)[] } | undefined;

  constructor(place: SidecarPlace, keys: SidecarKeys) {
    this.#place = place;
    this.#keys = keys;
  }

  /** The stored boxes of the entries `from` up to `to`, each from the file of its commit. */
  async boxes(from: number, to: number): Promise<(string | undefined)[]> {
    const boxes: (string | undefined)[] = Array.from({ length: to - from });
    for (const file of await findSidecarFiles(this.#place, from, to)) {
      const hidden = await this.#read(file);
      for (let at = Math.max(from, file.from); at < Math.min(to, file.size); at += 1) {
        boxes[at - from] = hidden[at - file.from] ?? undefined;
      }
    }
    return boxes;
  }

  /** Opens the hidden values of `entries`, which start at index `from` of the log. */
  async read(from: number, entries: readonly Uint8Array[]): Promise<Hidden[]> {
    const leaves = entries.map(readLeaf);
    if (!leaves.some((leaf) => leaf?.sd)) return entries.map(() => undefined);
    const boxes = await this.boxes(from, from + entries.length);
    const found: Hidden[] = [];
    for (const [at, leaf] of leaves.entries()) {
      const box = boxes[at];
      const opened = leaf?.sd && box !== undefined ? await openHidden(this.#keys, leaf.tn, box) : undefined;
      found.push(typeof opened === 'object' ? fitting(opened, leaf?.sd ?? {}) : opened);
    }
    return found;
  }

  async #read({ name, from }: SidecarFile): Promise<readonly (string | null)[]> {
    if (this.#open?.name === name) return this.#open.hidden;
    const { store } = this.#place;
    const stored = await store.read('sidecar', name);
    const text = stored && new TextDecoder().decode(stored.bytes);
    const parsed = sidecarFile.safeParse(text === undefined ? undefined : jsonOf(text));
    const hidden = parsed.success && parsed.data.from === from ? parsed.data.hidden : [];
    this.#open = { name, hidden };
    return hidden;
  }
}

function fitting(
  disclosures: Readonly<Record<string, string>>,
  commitments: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> | undefined {
  const fit = Object.entries(disclosures).filter(([name, text]) => checkDisclosure(text, commitments)?.name === name);
  return fit.length > 0 ? Object.fromEntries(fit) : undefined;
}
