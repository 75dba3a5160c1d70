import { createHash } from 'node:crypto';
import { z } from 'zod';
import { PROJECT_SEGMENTS_MAX } from '../../../../../shared/jobs/limits.ts';
import { jsonOf } from '../../../../../shared/json-text.ts';

// Contents of the sealed outcomes of a document: a plan is one line of JSON; a result is a line and then
// samples.

export const documentPlan = z.object({
  v: z.literal(1),
  /** How many segments each block has. */
  blocks: z.array(z.number().int().positive()).min(1).max(PROJECT_SEGMENTS_MAX),
  /**
   * Fingerprint of each segment's text: segments that another version has cut are not assembled with this
   * plan.
   */
  texts: z.array(z.string()).max(PROJECT_SEGMENTS_MAX).optional(),
});
export type DocumentPlan = z.infer<typeof documentPlan>;

/** Before the samples of a segment: 16 bits each, little endian, one channel. */
export const spokenLine = z.object({
  v: z.literal(1),
  text: z.string(),
  model: z.string(),
  revision: z.string(),
  voice: z.string().optional(),
  rate: z.number(),
  sampleRate: z.number().int().positive(),
  samples: z.number().int().nonnegative(),
  /** `sha256:` and hex, of the samples. */
  digest: z.string(),
  /** There was something in it to say. */
  spoken: z.boolean(),
});
export type SpokenLine = z.infer<typeof spokenLine>;

/** Enough to tell one text of a document from another. It lies where the text lies: inside the seal. */
export const fingerprint = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 12);

const NEWLINE = 0x0a;

/** A file of one line and what follows it. */
export interface HeadAndRest {
  /** JSON of any shape; `undefined` when there is none. */
  readonly line: unknown;
  readonly rest: AsyncGenerator<Uint8Array>;
  /** For who reads no further: lets go of the file, which a `rest` that was never begun cannot do. */
  close(): Promise<void>;
}

/** Reads the first line, at most `most` bytes; the rest is read on demand. */
export async function splitLine(bytes: AsyncGenerator<Uint8Array>, most: number): Promise<HeadAndRest> {
  const head: Uint8Array[] = [];
  let size = 0;
  const close = async () => void (await bytes.return(undefined));
  for (;;) {
    const { done, value } = await bytes.next();
    if (done) return { line: undefined, rest: bytes, close };
    const at = value.indexOf(NEWLINE);
    size += at < 0 ? value.length : at;
    if (size > most) return { line: undefined, rest: bytes, close };
    if (at < 0) {
      head.push(value);
      continue;
    }
    const text = Buffer.concat([...head, value.subarray(0, at)]).toString('utf8');
    return { line: jsonOf(text), rest: after(value.subarray(at + 1), bytes), close };
  }
}

async function* after(first: Uint8Array, bytes: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (first.length > 0) yield first;
    yield* bytes;
  } finally {
    await bytes.return(undefined);
  }
}
