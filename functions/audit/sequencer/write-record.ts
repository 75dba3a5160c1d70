// The write-ahead record of a commit: its entries, from which any process can finish it. It makes entries
// immutable before their tile is full.
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';

const record = z.object({
  v: z.literal(1),
  from: z.number().int(),
  to: z.number().int(),
  entries: z.array(z.string()),
});
export type WriteRecord = z.infer<typeof record>;

/** Speed counts more than size: a commit waits for it. */
const LEVEL = 1;

export function packRecord(from: number, entries: readonly Uint8Array[]): Uint8Array {
  const texts = entries.map((entry) => new TextDecoder('utf-8', { fatal: true }).decode(entry));
  const value: WriteRecord = { v: 1, from, to: from + entries.length, entries: texts };
  return gzipSync(JSON.stringify(value), { level: LEVEL });
}

export function unpackRecord(bytes: Uint8Array): { from: number; entries: Uint8Array[] } {
  const { from, entries } = record.parse(JSON.parse(gunzipSync(bytes).toString('utf8')));
  return { from, entries: entries.map((text) => new TextEncoder().encode(text)) };
}
