import type { Refusal } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Fields, ReadFile } from './form.ts';

/** A body that is the recording and nothing else: what a form would say is in the head. */
export async function readRaw(body: AsyncIterable<Result<Uint8Array>>, readFile: ReadFile): Promise<Result<Fields>> {
  let refusal: Refusal | undefined;
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const piece of body) {
      if (!piece.ok) {
        refusal = piece.refusal;
        return;
      }
      yield piece.value;
    }
  }
  const read = await readFile(bytes(), {});
  // A recording that was cut off by its way here is not to be judged as one that ends early.
  if (refusal) return no(refusal);
  return read.ok ? ok({}) : read;
}
