// Files of revisions in the two tiers below the engine: verified in the store, and copied for the engine.
import type { FileStore, LeasedFile } from '../store/file-store.ts';
import type { EngineFolder } from './engine-folder.ts';
import type { Resident } from './resident.ts';

export class RevisionFiles {
  readonly #store: FileStore;
  readonly #folder: EngineFolder;
  readonly #residents: ReadonlyMap<string, Resident>;

  constructor(store: FileStore, folder: EngineFolder, residents: ReadonlyMap<string, Resident>) {
    [this.#store, this.#folder, this.#residents] = [store, folder, residents];
  }

  /** Fetches the files of a revision into the store; returns the reason of a failure. */
  async fetch(resident: Resident): Promise<string | undefined> {
    // Leased until the last one is here: a download evicts what is neither leased nor pinned.
    const leased: LeasedFile[] = [];
    try {
      for (const file of resident.known.files) {
        const fetched = await this.#store.fetch(file, resident.known.source);
        if (!fetched.ok) return `${fetched.refusal.reason}: ${fetched.refusal.detail}`;
        leased.push(fetched.value);
      }
      resident.inSsd = true;
      this.#pin();
      return undefined;
    } finally {
      for (const file of leased) file.release();
    }
  }

  /** Copies the files of a revision for the engine; returns the reason of a failure. */
  async place(resident: Resident): Promise<string | undefined> {
    const placed = await this.#folder.place(resident.known, resident.known.source);
    if (!placed.ok) return `${placed.refusal.reason}: ${placed.refusal.detail}`;
    resident.inRam = true;
    return undefined;
  }

  async drop(tier: 'ram' | 'ssd', resident: Resident): Promise<undefined> {
    if (tier === 'ram') {
      resident.inRam = false;
      if (!resident.served) await this.#folder.remove(resident.known.digest);
      return;
    }
    resident.inSsd = false;
    this.#pin();
    for (const { digest } of resident.known.files) await this.#store.evict(digest);
  }

  /** Keeps the files of each revision that is on disk. */
  #pin(): void {
    const held = [...this.#residents.values()].filter(({ inSsd }) => inSsd);
    this.#store.pin(held.flatMap(({ known }) => known.files.map(({ digest }) => digest)));
  }
}
