import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { createEnvelope, type FileFacts, sealedBytes } from '../../../../shared/seal/envelope.ts';
import { openFile, sealInto } from '../../../../shared/seal/envelope-stream.ts';
import { SEAL_SEGMENT_BYTES } from '../../../../shared/seal/limits.ts';
import type { ZoneKey } from '../../../../shared/seal/zone-key.ts';
import { nodeAead } from '../identity/aead.ts';
import type { ZoneKeyring } from '../identity/zone-key.ts';
import type { BlobContent, BlobReader, Storage } from './storage.ts';

// Sealed files as a job sees them: plaintext comes out, plaintext goes in.

/** A file being opened. */
export interface Opened {
  /** Its plaintext. Ends early when something is wrong with it: look at `wrong` behind the last byte. */
  readonly bytes: AsyncGenerator<Uint8Array>;
  /** Why it ended early: what storage or the authority says may pass, `envelope_invalid` does not. */
  wrong(): Refusal | undefined;
}

/** Our own words for what is wrong, as its sender may read them. */
const ruleOf = (detail = '') => detail.replace(/^file: /, '') || 'it cannot be opened';

export function openSealed(
  source: BlobReader,
  expected: FileFacts,
  keyring: Pick<ZoneKeyring, 'held' | 'find'>,
): Opened {
  let wrong: Refusal | undefined;
  /** Why a key is not there that should be. */
  let trouble: Refusal | undefined;

  async function known(kid: string) {
    const held = await keyring.held(kid);
    if (!held.ok) {
      trouble = held.refusal;
      return undefined;
    }
    const key = held.value.get(kid);
    if (!key && keyring.find(kid))
      trouble = refuse('uploads_unavailable', undefined, 'a key of the zone is not released');
    return key;
  }

  async function* open() {
    for await (const segment of openFile(source.body, { expected, known, aead: nodeAead })) {
      if (segment.ok) {
        yield segment.value;
        continue;
      }
      // A connection that breaks looks like a file that was cut.
      const rule = ruleOf(segment.refusal.detail);
      wrong = source.failure() ?? trouble ?? refuse('envelope_invalid', { rule }, rule);
      return;
    }
  }
  return { bytes: open(), wrong: () => wrong };
}

/** Opens a file that is stored unsealed. */
export function openPlain(source: BlobReader): Opened {
  let wrong: Refusal | undefined;
  async function* open() {
    const reader = source.body.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield value;
      }
    } catch {
      wrong = source.failure() ?? refuse('uploads_unavailable', undefined, 'storage');
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }
  return { bytes: open(), wrong: () => wrong };
}

/** All of what is small. More than `limit` bytes of it are none of ours. */
export async function readWhole({ bytes, wrong }: Opened, limit: number): Promise<Result<Uint8Array>> {
  const chunks: Uint8Array[] = [];
  let sum = 0;
  for await (const chunk of bytes) {
    sum += chunk.length;
    if (sum > limit) return no(refuse('internal', undefined, 'an outcome is longer than it may be'));
    chunks.push(chunk);
  }
  const refusal = wrong();
  return refusal ? no(refusal) : ok(Buffer.concat(chunks));
}

/** A body of these chunks, cut small where they are large. Nothing is copied. */
function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const queue = [...chunks];
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = queue.shift();
        if (!chunk) return controller.close();
        const most = SEAL_SEGMENT_BYTES;
        if (chunk.length > most) queue.unshift(chunk.subarray(most));
        controller.enqueue(chunk.subarray(0, most));
      },
    },
    { highWaterMark: 0 },
  );
}

/** A sealed file of these chunks, under a new key at each call. */
export function sealContent(
  facts: FileFacts,
  zone: ZoneKey,
  chunks: readonly Uint8Array[],
): () => Promise<BlobContent> {
  const plain = chunks.reduce((sum, { length }) => sum + length, 0);
  return async () => {
    const envelope = await createEnvelope(facts, zone);
    const body = await sealInto(envelope, streamOf(chunks), nodeAead);
    return { length: sealedBytes(envelope.head.length, plain), body };
  };
}

/** A file without bytes: all it says is in its metadata. */
export const emptyContent = async (): Promise<BlobContent> => ({ length: 0, body: streamOf([]) });
/** Opener of the files of a zone. */
export interface ZoneFiles {
  readonly keyring: Pick<ZoneKeyring, 'held' | 'find'>;
  readonly storage: Pick<Storage, 'read'>;
}
