import type { Transform } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import type { Encoding } from '../../../../shared/kserve/call.ts';
import { INFER_BODY_BYTES } from '../../../../shared/kserve/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Opened } from '../../../../shared/seal/records.ts';
import type { BodyBudget } from '../engine/calls/body-budget.ts';

const unpackers: Record<Encoding, () => Transform> = { gzip: createGunzip, deflate: createInflate };

export interface HeldBody {
  readonly bytes: Uint8Array;
  /** Gives its share of the budget back. */
  release(): void;
}

const limit = INFER_BODY_BYTES;

/** The whole body, unpacked. Refusals: `tensors_too_large`, `tensors_invalid`, `pool_busy`, `seal_broken`. */
export async function readBody(
  records: AsyncGenerator<Result<Opened>>,
  encoding: Encoding | undefined,
  budget: BodyBudget,
): Promise<Result<HeldBody>> {
  let held = 0;
  const release = () => {
    budget.give(held);
    held = 0;
  };
  const take = (bytes: number) => {
    if (!budget.take(bytes)) return false;
    held += bytes;
    return true;
  };
  const read = await collect(records, take);
  const whole = read.ok && encoding ? await unpack(read.value, encoding, take) : read;
  if (whole.ok) return ok({ bytes: whole.value, release });
  release();
  return whole;
}

/** Pieces as one, each of which finds room as it comes: a few bytes may unpack to a great many. */
class Collected {
  readonly #take: (bytes: number) => boolean;
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  constructor(take: (bytes: number) => boolean) {
    this.#take = take;
  }

  add(part: Uint8Array): Result<undefined> {
    this.#length += part.length;
    if (this.#length > INFER_BODY_BYTES) return no(refuse('tensors_too_large', { limit }));
    if (!this.#take(part.length)) return no(refuse('pool_busy', undefined, 'bodies of callers'));
    this.#parts.push(part);
    return ok(undefined);
  }

  /** In memory that begins where the body does, so that tensors can be windows into it. */
  whole(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.#parts, this.#length));
  }
}

async function collect(
  records: AsyncGenerator<Result<Opened>>,
  take: (bytes: number) => boolean,
): Promise<Result<Uint8Array>> {
  const body = new Collected(take);
  for await (const record of records) {
    const added = record.ok ? body.add(record.value.plaintext) : record;
    if (!added.ok) return added;
  }
  return ok(body.whole());
}

async function unpack(
  packed: Uint8Array,
  encoding: Encoding,
  take: (bytes: number) => boolean,
): Promise<Result<Uint8Array>> {
  const body = new Collected(take);
  const unpacker = unpackers[encoding]();
  unpacker.end(packed);
  try {
    for await (const part of unpacker as AsyncIterable<Uint8Array>) {
      const added = body.add(part);
      if (!added.ok) return added;
    }
    return ok(body.whole());
  } catch {
    return no(refuse('tensors_invalid', { rule: `the body is not valid ${encoding}` }));
  }
}
