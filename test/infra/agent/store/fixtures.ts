import { createHash, randomBytes } from 'node:crypto';
import promises from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Disk, ModelFile, Source, StoreOptions } from '../../../../infra/pool/agent/store/contract.ts';
import { FileStore } from '../../../../infra/pool/agent/store/file-store.ts';

export const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

export interface Content extends ModelFile {
  readonly content: Buffer;
}

export function makeFile(bytes = 10_000): Content {
  const content = randomBytes(bytes);
  return { digest: sha256(content), bytes, content };
}

/** A source of known files that counts its reads and may alter what it sends. */
export function createSource(
  files: readonly Content[],
  alter: (piece: Buffer, at: number) => Buffer | Error = (a) => a,
) {
  const reads: { digest: string; from: number }[] = [];
  const source: Source = {
    async *read({ digest }, from) {
      reads.push({ digest, from });
      const { content } = files.find((file) => file.digest === digest)!;
      for (let at = from; at < content.length; at += 1_000) {
        const piece = alter(content.subarray(at, at + 1_000), at);
        if (piece instanceof Error) throw piece;
        yield piece;
      }
    },
  };
  return { source, reads };
}

export const temporary = () => promises.mkdtemp(path.join(os.tmpdir(), 'auricle-store-'));

/** Time passes only in `pass` and while the store waits, `leastMs` at least. */
export function createTime(leastMs = 0) {
  let now = Date.now();
  const repeated = new Set<() => Promise<void>>();
  return {
    now: () => now,
    /** Lets time pass, and then runs what is due at an interval once. */
    pass: async (ms: number) => {
      now += ms;
      for (const work of repeated) await work();
    },
    every: (_: number, work: () => Promise<void>) => {
      repeated.add(work);
      return () => void repeated.delete(work);
    },
    sleep: async (ms: number) => {
      now += Math.max(ms, leastMs);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

export type StoreCase = Partial<StoreOptions> & { readonly folder: string };

export const openStore = (options: StoreCase) => {
  const time = createTime();
  return FileStore.open({
    bytes: 100_000,
    order: (files) => files,
    disk: promises,
    now: time.now,
    sleep: time.sleep,
    every: time.every,
    signal: new AbortController().signal,
    ...options,
  });
};

type Work = (...given: unknown[]) => Promise<unknown>;

/** A disk that calls `before` for each operation, of its files too. */
export function watchedDisk(before: (operation: string, act: () => Promise<unknown>) => Promise<unknown>): Disk {
  const watch = (target: object, prefix: string): object =>
    new Proxy(target, {
      get(_, name) {
        const value = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return async (...given: unknown[]) => {
          const result = await before(`${prefix}${String(name)}`, () => (value as Work).apply(target, given));
          return name === 'open' ? watch(result as object, 'file.') : result;
        };
      },
    });
  return watch(promises, '') as Disk;
}
