import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { realRuntime } from '../../../../edge/clock.ts';
import { CallerBody } from '../../../../edge/http/caller-body.ts';
import { findSequence } from '../../../../edge/protocol/kserve/find-sequence.ts';
import { BUFFERED_BODY_BYTES } from '../../../../shared/speech/limits.ts';

type Framing = Parameters<typeof findSequence>[1];

/** A body that arrives in pieces of `size` bytes; how many were taken is counted. */
function arriving(bytes: Uint8Array, size = 16_384) {
  let taken = 0;
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (taken >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(taken, taken + size));
        taken += size;
      },
    },
    { highWaterMark: 0 },
  );
  return { body: new CallerBody(stream, realRuntime), taken: () => Math.min(taken, bytes.length) };
}

async function find(bytes: Uint8Array | string, framing: Partial<Framing> = {}, size?: number) {
  const { body, taken } = arriving(typeof bytes === 'string' ? Buffer.from(bytes) : bytes, size);
  const found = await findSequence(body, {
    headerLength: undefined,
    encoding: undefined,
    sequence: undefined,
    ...framing,
  });
  const whole = new Uint8Array(await new Response(body.open()).arrayBuffer());
  return { found: found.ok ? found.value : found.refusal.reason, taken: taken(), whole: whole.length };
}

const named = (id: unknown, more = '') => `{"inputs":[${more}],"parameters":{"sequence_id":${JSON.stringify(id)}}}`;

describe('A5 the sequence of a request, as the edge looks for it', () => {
  it.each([
    [named(7), '7'],
    [named('seven'), 'seven'],
    [named(0), undefined],
    [named(''), undefined],
    [named({}), undefined],
    [named('x'.repeat(300)), undefined],
    ['{"inputs":[]}', undefined],
    ['{"parameters":null,"x":"\\"sequence_id\\""}', undefined],
    ['null "sequence_id"', undefined],
    ['null', undefined],
    ['', undefined],
  ])('%s', async (json, wanted) => {
    expect(await find(json)).toMatchObject({ found: wanted, whole: Buffer.byteLength(json) });
  });

  it('is in the JSON part only, in any chunks, and nothing more is awaited', async () => {
    const json = named(7);
    const tail = Buffer.alloc(500_000, named(8));
    const headerLength = String(json.length);
    const whole = Buffer.concat([Buffer.from(json), tail]);
    for (const size of [1, 7, 4_096]) {
      const { body, taken } = arriving(whole, size);
      const found = await findSequence(body, { headerLength, encoding: undefined, sequence: undefined });
      expect(found).toEqual({ ok: true, value: '7' });
      expect(taken()).toBeLessThan(json.length + 2 * size);
    }
  });

  it('a JSON beyond the scan limit passes without routing hints', async () => {
    const long = named(7, `"${'x'.repeat(BUFFERED_BODY_BYTES)}"`);
    expect(await find(long)).toMatchObject({ found: undefined, whole: long.length });
    expect(await find(long, { headerLength: String(long.length) })).toMatchObject({ found: undefined });
    expect(
      await find(`${named(7)}${' '.repeat(BUFFERED_BODY_BYTES)}`, { headerLength: String(named(7).length) }),
    ).toMatchObject({ found: '7' });
  });

  it('an invalid length means the whole body, as the agent reads it', async () => {
    expect(await find(named(7), { headerLength: 'many' })).toMatchObject({ found: '7' });
    expect(await find(named(7), { headerLength: '9999999' })).toMatchObject({ found: '7' });
  });

  it('does not scan raw bodies or those described by headers', async () => {
    for (const framing of [{ headerLength: '0' }, { sequence: 'by-header' }]) {
      const { body, taken } = arriving(Buffer.from(named(7)));
      const found = await findSequence(body, {
        headerLength: undefined,
        encoding: undefined,
        sequence: undefined,
        ...framing,
      });
      expect(found).toEqual({ ok: true, value: framing.sequence });
      expect(taken()).toBe(0);
    }
  });

  it('packed messages are unpacked to the JSON’s end, within their bound', async () => {
    const json = named(7);
    const packed = gzipSync(Buffer.concat([Buffer.from(json), Buffer.alloc(100_000)]));
    expect(await find(packed, { encoding: 'gzip', headerLength: String(json.length) })).toMatchObject({ found: '7' });
    const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20, ' '));
    expect(await find(bomb, { encoding: 'gzip' })).toMatchObject({ found: undefined, whole: bomb.length });
    expect(await find('not packed', { encoding: 'gzip' })).toMatchObject({ found: undefined });
    expect(await find(packed.subarray(0, 20), { encoding: 'gzip' })).toMatchObject({ found: undefined });
  });

  it('a stalled caller is refused', async () => {
    const stuck = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) }, { highWaterMark: 0 });
    const body = new CallerBody(stuck, {
      ...realRuntime,
      after: () => ({ rings: realRuntime.after(0).rings, cancel: () => {} }),
    });
    const found = await findSequence(body, { headerLength: undefined, encoding: undefined, sequence: undefined });
    expect(found).toMatchObject({ ok: false });
  });
});
