import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { publicText } from '../../../shared/refusal.ts';
import { sizeOf, writeLength } from '../../../shared/seal/framing.ts';
import { SEAL_SEGMENT_BYTES } from '../../../shared/seal/limits.ts';
import { createOpener, createSealer, type Opener, SEAL_RECORD_BYTES } from '../../../shared/seal/records.ts';
import { frameKey, sealFrame } from '../../../shared/seal/sframe.ts';
import { suites } from '../../../shared/seal/suites.ts';
import { aeads } from './node-aead.ts';

const baseKey = new Uint8Array(64).map((_, at) => at);
const otherKey = new Uint8Array(64).map((_, at) => 63 - at);
const plaintexts = ['head', 'body '.repeat(20), ''].map((text) => new TextEncoder().encode(text));
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

describe.each(aeads)('C5 A21 records with %s', (_, aead) => {
  const opener = (key = baseKey) => createOpener(key, 5, aead);

  async function sealed(key = baseKey): Promise<[Uint8Array, Uint8Array, Uint8Array]> {
    const sealer = await createSealer(key, 5, aead);
    const [head, body, last] = plaintexts as [Uint8Array, Uint8Array, Uint8Array];
    return [await sealer.seal(head, false), await sealer.seal(body, false), await sealer.seal(last, true)];
  }

  /** A frame that is authentic, but need not keep to the protocol. */
  async function frame(counter: bigint, flag: number, plaintext: Uint8Array, kid = 0n): Promise<Uint8Array> {
    const key = await frameKey(baseKey, suites[5], kid, aead);
    const own = await sealFrame(key, counter, Uint8Array.of(flag), plaintext);
    const length = new Uint8Array(sizeOf(own.length + 1));
    writeLength(length, 0, own.length + 1);
    return Buffer.concat([length, Uint8Array.of(flag), own]);
  }

  it('survive any chunking whole and in order', async () => {
    const lists = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 8 });
    const sizes = fc.array(fc.nat({ max: 90 }), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(lists, sizes, async (list, cuts) => {
        const sealer = await createSealer(baseKey, 5, aead);
        const records = await Promise.all(list.map((plain, at) => sealer.seal(plain, at === list.length - 1)));
        const one = await opener();
        const { opened, refusal } = await openAll(one, cut(Buffer.concat(records), cuts));
        expect(opened.map((plain) => [...plain])).toEqual(list.map((plain) => [...plain]));
        expect([one.finished(), refusal]).toEqual([true, undefined]);
      }),
      { numRuns: 40 },
    );
  });

  it('carry a full segment and refuse to seal more', async () => {
    const size = SEAL_SEGMENT_BYTES;
    const sealer = await createSealer(baseKey, 5, aead);
    await expect(sealer.seal(new Uint8Array(size + 1), false)).rejects.toThrow(RangeError);
    const record = await sealer.seal(new Uint8Array(size), true);
    expect(record.length).toBeLessThanOrEqual(SEAL_RECORD_BYTES);
    expect((await openAll(await opener(), [record])).opened[0]?.length).toBe(size);
    await expect(sealer.seal(new Uint8Array(1), true)).rejects.toThrow('final');
  });

  type Case = [what: string, opened: number, detail: string | undefined, change: (r: Uint8Array[]) => Uint8Array[]];
  const flip = (bytes: Uint8Array, at: number, bit = 1) => bytes.map((byte, i) => (i === at ? byte ^ bit : byte));
  const at = (which: number, change: (record: Uint8Array) => Uint8Array) => (records: Uint8Array[]) =>
    records.map((record, index) => (index === which ? change(record) : record));

  // Record 1 has a length of two bytes, then the flag, then a header of one byte. Record 0 has a length of one.
  it.each<Case>([
    ['a flag that says final', 1, 'record 1: not authentic', at(1, (r) => flip(r, 2))],
    ['a last record that says not final', 2, 'record 2: not authentic', at(2, (r) => flip(r, 1))],
    ['an unknown flag', 1, 'record 1: unknown flag', at(1, (r) => flip(r, 2, 0x80))],
    ['another counter', 1, 'record 1: counter out of order', at(1, (r) => flip(r, 3, 2))],
    ['another key id', 1, 'record 1: unexpected key id', at(1, (r) => flip(r, 3, 0x10))],
    ['a header in a longer form', 1, 'record 1: malformed header', at(1, longerHeader)],
    ['a changed ciphertext', 1, 'record 1: not authentic', at(1, (r) => flip(r, 4))],
    ['a changed end of the ciphertext', 1, 'record 1: not authentic', at(1, (r) => flip(r, r.length - 17))],
    ['a changed tag', 1, 'record 1: not authentic', at(1, (r) => flip(r, r.length - 16))],
    ['a changed end of the tag', 1, 'record 1: not authentic', at(1, (r) => flip(r, r.length - 1, 0x80))],
    ['a length that is one short', 1, 'record 1: not authentic', at(1, (r) => flip(r, 1))],
    ['a length in a longer form', 0, 'record 0: length out of bounds', at(0, longer)],
    ['an 8-byte length', 0, 'record 0: length out of bounds', at(0, (r) => flip(r, 0, 0xc0))],
    ['a length too small for a tag', 0, 'record 0: length out of bounds', () => [Uint8Array.of(17)]],
    ['a length of nothing', 0, 'record 0: length out of bounds', () => [Uint8Array.of(0)]],
    ['records out of order', 1, 'record 1: counter out of order', ([a, b, c]) => [a, c, b] as Uint8Array[]],
    ['a record twice', 2, 'record 2: counter out of order', ([a, b, c]) => [a, b, b, c] as Uint8Array[]],
    ['a record left out', 1, 'record 1: counter out of order', ([a, , c]) => [a, c] as Uint8Array[]],
    ['the first left out', 0, 'record 0: counter out of order', ([, b, c]) => [b, c] as Uint8Array[]],
    [
      'a record after the final one',
      3,
      'record 3: bytes after the final record',
      (all) => [...all, all[0] as Uint8Array],
    ],
    ['a byte after the final one', 3, 'record 3: bytes after the final record', (all) => [...all, Uint8Array.of(0)]],
    ['no final record', 2, undefined, (all) => all.slice(0, 2)],
    ['the end cut off', 2, undefined, at(2, (r) => r.slice(0, -1))],
    ['nothing at all', 0, undefined, () => []],
  ])('with %s: %i opened, then %s', async (_, count, detail, change) => {
    for (const cuts of [[1_000_000], [1], [7]]) {
      const one = await opener();
      const { opened, refusal } = await openAll(one, cut(Buffer.concat(change(await sealed())), cuts));
      expect(opened.map(text)).toEqual(plaintexts.slice(0, count).map(text));
      expect([refusal?.reason, refusal?.detail, one.finished()]).toEqual([detail && 'seal_broken', detail, false]);
    }
  });

  it.each<[string, () => Promise<Uint8Array>, string]>([
    ['a key id', () => frame(0n, 0, new Uint8Array(1), 1n), 'record 0: unexpected key id'],
    ['a counter to start with', () => frame(1n, 0, new Uint8Array(1)), 'record 0: counter out of order'],
    ['a flag of a later version', () => frame(0n, 2, new Uint8Array(1)), 'record 0: unknown flag'],
    [
      'a segment over the bound',
      () => frame(0n, 0, new Uint8Array(SEAL_SEGMENT_BYTES + 1)),
      'record 0: segment too large',
    ],
    [
      'a record over the bound',
      () => frame(0n, 0, new Uint8Array(SEAL_RECORD_BYTES)),
      'record 0: length out of bounds',
    ],
  ])('a peer with the key that sends %s', async (_, record, detail) => {
    const { opened, refusal } = await openAll(await opener(), [await record()]);
    expect([opened, refusal?.detail]).toEqual([[], detail]);
  });

  it('do not open with the key of the other direction', async () => {
    const { opened, refusal } = await openAll(await opener(otherKey), await sealed());
    expect([opened, refusal?.detail]).toEqual([[], 'record 0: not authentic']);
  });

  it('after any change of any byte only earlier records open', async () => {
    const whole = Buffer.concat(await sealed());
    const change = fc.record({ at: fc.nat({ max: whole.length - 1 }), by: fc.integer({ min: 1, max: 255 }) });
    await fc.assert(
      fc.asyncProperty(change, async ({ at: where, by }) => {
        const one = await opener();
        const { opened } = await openAll(one, [whole.map((byte, index) => (index === where ? byte ^ by : byte))]);
        expect(opened.map(text)).toEqual(plaintexts.slice(0, opened.length).map(text));
        expect([opened.length < plaintexts.length, one.finished()]).toEqual([true, false]);
      }),
      { numRuns: 300 },
    );
  });

  it('are a refusal when they are arbitrary bytes, never an exception', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), async (chunks) => {
        const one = await opener();
        const { opened, refusal } = await openAll(one, chunks);
        expect([opened, one.finished()]).toEqual([[], false]);
        if (refusal) expect(publicText(refusal)).toBe('The sealed body cannot be opened.');
      }),
      { numRuns: 300 },
    );
  });

  it('stay refused after the first refusal', async () => {
    const [head, body, last] = await sealed();
    const one = await opener();
    const first = await openAll(one, [flip(head, 5)]);
    const later = await openAll(one, [body, last]);
    expect([first.refusal?.detail, later.refusal?.detail]).toEqual([
      'record 0: not authentic',
      'record 0: not authentic',
    ]);
    expect([later.opened, one.finished()]).toEqual([[], false]);
  });

  it('that were not taken are kept for the next call', async () => {
    const one = await opener();
    for await (const opened of one.open(Buffer.concat(await sealed()))) {
      expect(opened.ok).toBe(true);
      break;
    }
    expect(one.finished()).toBe(false);
    expect((await openAll(one, [new Uint8Array()])).opened.map(text)).toEqual(plaintexts.slice(1).map(text));
    expect(one.finished()).toBe(true);
  });
});

describe('C5 limits of a key', () => {
  it('end it on both sides', async () => {
    // Sealing 2^24 records takes too long for a test, so the AEAD does nothing here.
    const idle = () => ({ seal: () => new Uint8Array(16), open: () => new Uint8Array() });
    const bound = 2 ** 14;
    const sealer = await createSealer(baseKey, 5, idle, bound);
    const opener = await createOpener(baseKey, 5, idle, bound);
    const records: Uint8Array[] = [];
    for (let at = 0; at < bound; at++) records.push(await sealer.seal(new Uint8Array(), false));
    await expect(sealer.seal(new Uint8Array(), false)).rejects.toThrow('too many records');
    const { opened, refusal } = await openAll(opener, [...records, recordAfter(bound)]);
    expect([opened.length, refusal?.detail]).toEqual([bound, `record ${bound}: too many records under one key`]);
  });

  /** Flag, header with a 2-byte counter, and what the idle AEAD takes for a tag. */
  function recordAfter(counter: number): Uint8Array {
    return Uint8Array.of(20, 0, 0x09, counter >> 8, counter & 0xff, ...new Uint8Array(16));
  }
});

async function openAll(opener: Opener, chunks: readonly Uint8Array[]) {
  const opened: Uint8Array[] = [];
  for (const chunk of chunks)
    for await (const result of opener.open(chunk)) {
      if (!result.ok) return { opened, refusal: result.refusal };
      opened.push(result.value.plaintext);
    }
  return { opened, refusal: undefined };
}

/** The same length in two bytes instead of one. */
function longer(record: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(0x40), record]);
}

/** Counter 1 as a header of two bytes, and the length of the record to match. */
function longerHeader(record: Uint8Array): Uint8Array {
  const [high = 0, low = 0, flag = 0] = record;
  return Buffer.concat([Uint8Array.of(high, low + 1, flag, 0x08, 1), record.subarray(4)]);
}

/** Cuts bytes into chunks of these sizes, over and over; a size of 0 is an empty chunk. */
function cut(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const turns = sizes.some((size) => size > 0) ? sizes : [1];
  const chunks: Uint8Array[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = turns[turn % turns.length] ?? 1;
    chunks.push(bytes.slice(at, at + size));
    at += size;
  }
  return chunks;
}
