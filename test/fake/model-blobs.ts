import { createHash } from 'node:crypto';
import type { ModelContext } from '../../functions/registry/model-context.ts';

type StoreBlobs = ModelContext['blobs'];

import type { BlobFacts } from '../../functions/store/blobs.ts';

/** Blobs of the model store in memory. An address names its right, container and blob. */
export class ModelBlobs implements StoreBlobs {
  readonly #blobs = new Map<string, { readonly bytes: string; readonly etag: string }>();
  #version = 0;
  /** Runs in the middle of hashing. */
  onDigest: () => void = () => {};

  /** Writes through an address, as a client does. */
  write(url: string, bytes: string): void {
    if (!url.startsWith('write:')) throw new Error(`${url} does not write`);
    this.#put(url.slice('write:'.length), bytes);
  }

  async find(container: string, name: string): Promise<BlobFacts | undefined> {
    const blob = this.#blobs.get(`${container}/${name}`);
    return blob && { name, bytes: blob.bytes.length, etag: blob.etag, metadata: {} };
  }

  async digest(container: string, found: BlobFacts): Promise<string | undefined> {
    const blob = this.#at(container, found);
    this.onDigest();
    return blob && createHash('sha256').update(blob.bytes).digest('hex');
  }

  async copy(from: string, to: string, found: BlobFacts): Promise<boolean> {
    const blob = this.#at(from, found);
    if (blob && !this.#blobs.has(`${to}/${found.name}`)) this.#put(`${to}/${found.name}`, blob.bytes);
    return blob !== undefined;
  }

  async discard(container: string, found: BlobFacts): Promise<void> {
    if (this.#at(container, found)) this.#blobs.delete(`${container}/${found.name}`);
  }

  async list(container: string): Promise<BlobFacts[]> {
    return [...this.#blobs]
      .filter(([place]) => place.startsWith(`${container}/`))
      .map(([place, { bytes, etag }]) => {
        return { name: place.slice(container.length + 1), bytes: bytes.length, etag, metadata: {} };
      });
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
