import { createHash } from 'node:crypto';
import type { ModelContext } from '../../functions/registry/model-context.ts';
import type { BlobFacts, Placement } from '../../functions/store/blobs.ts';
import type { BlobTier, RehydratePriority } from '../../shared/registry/tiers.ts';

type StoreBlobs = ModelContext['blobs'];

/** Blobs of the model store in memory. An address names its right, container and blob. */
export class ModelBlobs implements StoreBlobs {
  readonly #blobs = new Map<string, { readonly bytes: string; readonly etag: string }>();
  /** Sizes of files that are larger than their bytes here. */
  readonly #sizes = new Map<string, number>();
  readonly #placed = new Map<string, Placement>();
  /** Bytes of copies that are pending, by container and name. */
  readonly #pending = new Map<string, string>();
  readonly #failed = new Set<string>();
  /** Reports whether the next copy stays pending until `endCopies`. */
  isPending = (): boolean => false;
  #version = 0;
  now = (): number => Date.now();
  /** Runs in the middle of hashing. */
  onDigest: () => void | Promise<void> = () => {};

  /** Writes through an address, as a client does. */
  write(url: string, bytes: string): void {
    if (!url.startsWith('write:')) throw new Error(`${url} does not write`);
    this.#put(url.slice('write:'.length), bytes);
  }

  /** Reads through an address. */
  read(url: string): string | undefined {
    return this.#blobs.get(url.replace(/^read:/, ''))?.bytes;
  }

  /** Puts a file of the store into a tier. */
  place(digest: string, placed: Placement, bytes?: number): void {
    this.#placed.set(`models/${digest}`, placed);
    if (bytes !== undefined) this.#sizes.set(`models/${digest}`, bytes);
  }

  async find(container: string, name: string): Promise<BlobFacts | undefined> {
    const blob = this.#blobs.get(`${container}/${name}`);
    return blob && this.#facts(`${container}/${name}`, name, blob);
  }

  async digest(container: string, found: BlobFacts): Promise<string | undefined> {
    const blob = this.#at(container, found);
    await this.onDigest();
    return blob && createHash('sha256').update(blob.bytes).digest('hex');
  }

  async copy(from: string, to: string, found: BlobFacts): Promise<boolean> {
    const place = `${to}/${found.name}`;
    const blob = this.#at(from, found);
    if (!blob || this.#blobs.has(place)) return false;
    const isPending = this.isPending();
    if (isPending) this.#pending.set(place, blob.bytes);
    this.#put(place, isPending ? '' : blob.bytes);
    return !isPending;
  }

  /** Ends the pending copies; a failed one leaves a blob without bytes. */
  endCopies(end: () => 'success' | 'failed'): void {
    for (const [place, bytes] of this.#pending) {
      if (end() === 'success') this.#put(place, bytes);
      else this.#failed.add(place);
    }
    this.#pending.clear();
  }

  async discard(container: string, found: BlobFacts): Promise<void> {
    const place = `${container}/${found.name}`;
    if (this.#pending.has(place) || !this.#at(container, found)) return;
    this.#blobs.delete(place);
    this.#failed.delete(place);
  }

  async list(container: string): Promise<BlobFacts[]> {
    return [...this.#blobs]
      .filter(([place]) => place.startsWith(`${container}/`))
      .map(([place, blob]) => this.#facts(place, place.slice(container.length + 1), blob));
  }

  #facts(place: string, name: string, { bytes, etag }: { readonly bytes: string; readonly etag: string }): BlobFacts {
    return {
      name,
      bytes: this.#sizes.get(place) ?? bytes.length,
      etag,
      metadata: {},
      placed: this.#placed.get(place) ?? { tier: 'hot', since: 0 },
      ...(this.#pending.has(place) && { copy: 'pending' }),
      ...(this.#failed.has(place) && { copy: 'failed' }),
    };
  }

  async setTier(container: string, name: string, tier: BlobTier, _?: RehydratePriority): Promise<void> {
    this.#placed.set(`${container}/${name}`, { tier, since: this.now() });
  }

  async address(container: string, name: string, right: string): Promise<string> {
    return `${right}:${container}/${name}`;
  }

  #put(place: string, bytes: string): void {
    this.#version += 1;
    this.#blobs.set(place, { bytes, etag: `"${this.#version}"` });
  }

  #at(container: string, { name, etag }: BlobFacts) {
    const blob = this.#blobs.get(`${container}/${name}`);
    return blob?.etag === etag ? blob : undefined;
  }
}
