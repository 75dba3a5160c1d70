import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AudioRing, type Mark, STREAM_SLAB_BYTES } from '../../../edge/stream/audio-ring.ts';

type Step = { readonly push: number } | { readonly mark: true } | { readonly settle: number };
const steps = fc.array(
  fc.oneof(
    fc.record({ push: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ mark: fc.constant(true as const) }),
    fc.record({ settle: fc.double({ min: 0, max: 1, noNaN: true }) }),
  ),
  { maxLength: 200 },
);

/** Everything in the ring, as a replay would send it. */
function read(ring: AudioRing): { audio: number[]; positions: number[]; marks: [number, number][] } {
  const [audio, positions, marks]: [number[], number[], [number, number][]] = [[], [], []];
  for (let number = ring.first; number < ring.next; number++) {
    const item = ring.at(number);
    if (item?.kind === 'audio') {
      for (const [at, byte] of item.audio.entries()) {
        audio.push(byte);
        positions.push(item.position + at);
      }
    } else if (item?.mark.type === 'finalize') marks.push([item.mark.id, item.position]);
  }
  return { audio, positions, marks };
}

describe('the audio ring', () => {
  it('returns every byte behind the trimmed position, in order', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 0, max: 1_000 }), (all: Step[], from) => {
        const ring = new AudioRing(from, { bytes: 60, items: 40, marks: 0 });
        const sent: number[] = [];
        const open = new Map<number, number>();
        let [settled, ids] = [from, 0];
        for (const step of all) {
          if ('push' in step) {
            const bytes = Uint8Array.from({ length: step.push }, (_, at) => (sent.length + at) % 251);
            const room = ring.hasRoom(bytes.length);
            expect(ring.push(bytes, bytes.length / 10)).toBe(room);
            if (room) sent.push(...bytes);
          } else if ('mark' in step) {
            const id = ids++;
            const mark: Mark = { type: 'finalize', id, position: ring.end };
            if (ring.mark(mark)) open.set(id, ring.end);
          } else {
            settled += Math.round((ring.end - settled) * step.settle);
            // Even ones were answered.
            ring.trim(settled, (mark) => 'id' in mark && mark.id % 2 === 0);
            for (const [id, at] of open) if (at <= settled && id % 2 === 0) open.delete(id);
          }
          const { audio, positions, marks } = read(ring);
          expect([ring.start, ring.end, ring.bytes]).toEqual([
            settled,
            from + sent.length,
            sent.length + from - settled,
          ]);
          expect(audio).toEqual(sent.slice(settled - from));
          expect(positions).toEqual(audio.map((_, at) => settled + at));
          expect(marks).toEqual([...open]);
          expect(ring.bytes).toBeLessThanOrEqual(60);
          expect(ring.next - ring.first).toBeLessThanOrEqual(40);
        }
      }),
    );
  });

  it('keeps messages intact while slabs are reused, larger ones included', () => {
    const size = fc.oneof(fc.integer({ min: 1, max: 6_000 }), fc.integer({ min: 1, max: 40_000 }));
    const step = fc.record({ size, percent: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60 })) });
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 60 }), (all) => {
        const ring = new AudioRing(0);
        // The caller reuses the memory of its message, too.
        const message = new Uint8Array(40_000);
        const sent: { position: number; size: number; fill: number }[] = [];
        for (const [fill, { size, percent }] of all.entries()) {
          sent.push({ position: ring.end, size, fill });
          ring.push(message.fill(fill).subarray(0, size), 1);
          ring.trim(ring.start + Math.round((ring.bytes * percent) / 100), () => true);
          const kept = sent.filter((one) => one.position + one.size > ring.start);
          expect(ring.next - ring.first).toBe(kept.length);
          for (const [index, one] of kept.entries()) {
            const item = ring.at(ring.first + index);
            const from = Math.max(one.position, ring.start);
            const length = one.position + one.size - from;
            const intact = item?.kind === 'audio' && Buffer.alloc(length, one.fill).equals(item.audio);
            expect([item?.position, intact]).toEqual([from, true]);
          }
        }
        expect(ring.memory).toBeGreaterThanOrEqual(ring.bytes);
        ring.trim(ring.end, () => true);
        expect(ring.memory).toBeLessThanOrEqual(STREAM_SLAB_BYTES);
      }),
    );
  });

  it('passes memory to other rings without its audio', () => {
    const [one, other] = [new AudioRing(0), new AudioRing(0)];
    for (let at = 0; at < 64; at++) one.push(new Uint8Array(STREAM_SLAB_BYTES / 4).fill(7), 0.1);
    one.trim(one.end, () => true);
    const buffers = new Set<ArrayBufferLike>();
    for (let at = 0; at < 8; at++) {
      other.push(Uint8Array.of(1), 0.1);
      const item = other.at(at);
      if (item?.kind !== 'audio') throw new Error('no audio');
      buffers.add(item.audio.buffer);
      other.push(new Uint8Array(STREAM_SLAB_BYTES / 2), 0.1);
    }
    for (const buffer of buffers) expect(new Uint8Array(buffer)).not.toContain(7);
  });

  it('keeps the numbers of items, so that a reader can go on', () => {
    const ring = new AudioRing(0);
    for (let at = 0; at < 300; at++) ring.push(Uint8Array.of(at % 251), 0.1);
    for (let settled = 0; settled < 300; settled += 7) {
      ring.trim(settled, () => true);
      expect(ring.at(299)).toMatchObject({ position: 299 });
      expect(ring.at(settled - 1)).toBeUndefined();
      expect(ring.at(settled)).toMatchObject({ position: settled });
    }
  });

  it('keeps positions of messages, and cuts the first one', () => {
    const ring = new AudioRing(100);
    ring.push(new Uint8Array(10).fill(1), 1);
    ring.push(new Uint8Array(10).fill(2), 1);
    ring.trim(104, () => true);
    expect(ring.at(0)).toMatchObject({ position: 104, audio: new Uint8Array(6).fill(1), seconds: 0.6 });
    expect(ring.at(1)).toMatchObject({ position: 110, seconds: 1 });
  });

  it('§3-18 takes a bounded number of marks when full of messages', () => {
    const ring = new AudioRing(0, { bytes: 60, items: 4, marks: 2 });
    for (let at = 0; at < 4; at++) expect(ring.push(Uint8Array.of(at), 0.1)).toBe(true);
    expect(ring.push(Uint8Array.of(4), 0.1)).toBe(false);
    const marked = [7, 8, 9].map((id) => ring.mark({ type: 'finalize', id, position: ring.end }));
    expect(marked).toEqual([true, true, false]);
    expect(read(ring).marks).toEqual([
      [7, 4],
      [8, 4],
    ]);
  });

  it('throws when it is trimmed outside its range', () => {
    const ring = new AudioRing(10);
    expect(() => ring.trim(11, () => true)).toThrow(RangeError);
    expect(() => ring.trim(9, () => true)).toThrow(RangeError);
  });
});
