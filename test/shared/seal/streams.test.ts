import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SEAL_SEGMENT_BYTES } from '../../../shared/seal/limits.ts';
import { createOpener, createSealer } from '../../../shared/seal/records.ts';
import { openStream, sealStream, sealWhole } from '../../../shared/seal/streams.ts';
import { settle } from '../../fake/clock.ts';
import { aeads } from './node-aead.ts';

const baseKey = new Uint8Array(64).map((_, at) => at);
const segment = SEAL_SEGMENT_BYTES;
const head = new TextEncoder().encode('head');

/** A body that counts its pulls; `chunk` returns the next bytes, or nothing at the end. */
function source(chunk: (turn: number) => Uint8Array | Error | undefined) {
  const seen = { pulls: 0, cancelled: undefined as unknown };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const next = chunk(seen.pulls++);
        if (next instanceof Error) controller.error(next);
        else if (next) controller.enqueue(next);
        else controller.close();
      },
      cancel(reason) {
        seen.cancelled = reason ?? 'cancelled';
      },
    },
    { highWaterMark: 0 },
  );
  return { body, seen };
}
const listed = (chunks: readonly Uint8Array[]) => source((turn) => chunks[turn]);

describe.each(aeads)('C5 A21 streams with %s', (_, aead) => {
  const sealer = () => createSealer(baseKey, 5, aead);
  const opener = () => createOpener(baseKey, 5, aead);

  async function openAll(body: ReadableStream<Uint8Array>) {
    const sizes: number[] = [];
    const parts: Uint8Array[] = [];
    for await (const opened of openStream(body, await opener())) {
      if (!opened.ok) return { sizes, bytes: Buffer.concat(parts), refusal: opened.refusal };
      sizes.push(opened.value.plaintext.length);
      parts.push(opened.value.plaintext);
    }
    return { sizes, bytes: Buffer.concat(parts), refusal: undefined };
  }

  it('bring any body back, in segments of the bound', async () => {
    const sizes = fc.array(fc.oneof(fc.nat({ max: 500 }), fc.nat({ max: 3 * segment })), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.boolean(), async (lengths, withHead) => {
        const chunks = lengths.map((length, at) => new Uint8Array(length).fill(at + 1));
        const whole = Buffer.concat(withHead ? [head, ...chunks] : chunks);
        const result = await openAll(sealStream(withHead ? head : undefined, listed(chunks).body, await sealer()));
        expect(result.refusal).toBeUndefined();
        expect(result.bytes.equals(whole)).toBe(true);
        const segments = withHead ? result.sizes.slice(1) : result.sizes;
        expect(segments.slice(0, -1).every((size) => size === segment)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  it('seal a whole body as the stream of it is sealed', async () => {
    const lengths = fc.array(fc.oneof(fc.nat({ max: 500 }), fc.nat({ max: 3 * segment })), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(lengths, async (all) => {
        const pieces = all.map((length, at) => new Uint8Array(length).fill(at + 1));
        const own = await sealer();
        const sealed = await sealWhole(() => own.seal(head, false), pieces, own);
        const result = await openAll(listed([sealed]).body);
        expect(result.refusal).toBeUndefined();
        expect(result.bytes.equals(Buffer.concat([head, ...pieces]))).toBe(true);
        expect(result.sizes.every((size) => size <= segment)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  it('send the head before the body has a byte', async () => {
    const { body, seen } = source(() => new Uint8Array(1));
    const reader = sealStream(head, body, await sealer()).getReader();
    expect((await reader.read()).done).toBe(false);
    expect(seen.pulls).toBe(0);
    await reader.cancel();
  });

  it('seal an empty body as one final record', async () => {
    expect(await openAll(sealStream(undefined, listed([]).body, await sealer()))).toMatchObject({ sizes: [0] });
  });

  it('read a body only as fast as it is taken', async () => {
    const { body, seen } = source(() => new Uint8Array(segment));
    const reader = sealStream(head, body, await sealer()).getReader();
    for (let taken = 0; taken < 5; taken++) {
      await reader.read();
      await settle();
      expect(seen.pulls).toBe(taken);
    }
    await reader.cancel('enough');
    expect(seen.cancelled).toBe('enough');
  });

  it('open a body only as fast as it is taken', async () => {
    const own = await sealer();
    const records = await Promise.all(
      Array.from({ length: 20 }, (_, at) => own.seal(new Uint8Array(segment), at === 19)),
    );
    const { body, seen } = listed(records);
    let taken = 0;
    for await (const opened of openStream(body, await opener())) {
      expect(opened.ok).toBe(true);
      await settle();
      expect(seen.pulls).toBe(++taken);
    }
    expect(taken).toBe(20);
  });

  it('cancel the body when the reader leaves early', async () => {
    const { body, seen } = listed([await (await sealer()).seal(head, false), new Uint8Array(1)]);
    for await (const opened of openStream(body, await opener())) {
      expect(opened.ok).toBe(true);
      break;
    }
    expect(seen.cancelled).toBe('cancelled');
  });

  it('cancel the body after a record that does not open', async () => {
    const { body, seen } = listed([new Uint8Array(100).fill(30), new Uint8Array(1)]);
    expect(await openAll(body)).toMatchObject({ refusal: { reason: 'seal_broken' } });
    expect(seen.cancelled).toBe('cancelled');
  });

  it.each([
    ['ends', undefined],
    ['breaks', new Error('network')],
  ])('refuse a body that %s before its final record', async (_, end) => {
    const record = await (await sealer()).seal(head, false);
    for (const kept of [record.length, record.length - 1, 0]) {
      const { body } = source((turn) => (turn === 0 ? record.slice(0, kept) : end));
      const { bytes, refusal } = await openAll(body);
      expect(bytes.toString()).toBe(kept === record.length ? 'head' : '');
      expect(refusal).toEqual({ reason: 'seal_broken', detail: 'the body ended before its final record' });
    }
  });

  it('break when the body breaks, and send no final record', async () => {
    const { body } = source((turn) => (turn === 0 ? new Uint8Array(segment) : new Error('client left')));
    const result = await openAll(sealStream(head, body, await sealer()));
    expect(result).toMatchObject({ sizes: [4, segment], refusal: { reason: 'seal_broken' } });
  });
});
