import { createHash } from 'node:crypto';
import type { BlobFacts, PlainBlobs } from '../../functions/store/blobs.ts';

/** Blobs of one container in memory. An address names its right and its blob. */
export class MemoryBlobs implements Pick<PlainBlobs, 'find' | 'digest' | 'list' | 'remove' | 'address'> {
  readonly #blobs = new Map<string, { readonly bytes: string; readonly etag: string }>();
  #version = 0;

  /** Writes through an address, as a client does. */
  write(url: string, bytes: string): void {
    if (!url.startsWith('write:')) throw new Error(`${url} does not write`);
    this.#version += 1;
    this.#blobs.set(url.slice('write:'.length), { bytes, etag: `"${this.#version}"` });
  }

  read(url: string): string | undefined {
    return url.startsWith('read:') ? this.#blobs.get(url.slice('read:'.length))?.bytes : undefined;
  }

  async find(_container: string, name: string): Promise<BlobFacts | undefined> {
    const blob = this.#blobs.get(name);
    return blob && { name, bytes: blob.bytes.length, etag: blob.etag, metadata: {} };
  }

  async digest(_container: string, { name, etag }: BlobFacts): Promise<string | undefined> {
    const blob = this.#blobs.get(name);
    return blob?.etag === etag ? createHash('sha256').update(blob.bytes).digest('hex') : undefined;
  }

  async list(): Promise<BlobFacts[]> {
    return [...this.#blobs].map(([name, { bytes, etag }]) => ({ name, bytes: bytes.length, etag, metadata: {} }));
  }

  async remove(_container: string, name: string): Promise<void> {
    this.#blobs.delete(name);
  }

  async address(_container: string, name: string, right: string): Promise<string> {
    return `${right}:${name}`;
  }
}
