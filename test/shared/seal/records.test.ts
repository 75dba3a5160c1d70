import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Result } from '../../../shared/result.ts';
import { createOpener, createSealer, type Opened, type Opener } from '../../../shared/seal/records.ts';
import { aeads } from './node-aead.ts';

const baseKey = new Uint8Array(64).map((_, at) => at);

async function openAll(opener: Opener, chunks: readonly Uint8Array[]): Promise<Result<Opened>[]> {
  const results: Result<Opened>[] = [];
  for (const chunk of chunks) for await (const opened of opener.open(chunk)) results.push(opened);
  return results;
}

describe.each(aeads)('C5 A21 records with %s', (_, aead) => {
  it('come back whole and in order, whatever the chunking', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 20 }),
        async (plaintexts, cuts) => {
          const sealer = await createSealer(baseKey, 5, aead);
          const records: Uint8Array[] = [];
          for (const [at, plain] of plaintexts.entries())
            records.push(await sealer.seal(plain, at === plaintexts.length - 1));
          const opener = await createOpener(baseKey, 5, aead);
          const results = await openAll(opener, cut(Buffer.concat(records), cuts));
          expect(results.map((result) => result.ok && [...result.value.plaintext])).toEqual(
            plaintexts.map((plain) => [...plain]),
          );
          expect(opener.finished()).toBe(true);
        },
      ),
      { numRuns: 40 },
    );
  });
});

function cut(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    chunks.push(bytes.slice(at, at + size));
    at += size;
  }
  return chunks;
}
