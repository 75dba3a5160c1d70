import { describe, expect, it } from 'vitest';
import { late, type Runtime } from '../../../edge/clock.ts';
import { BODY_LARGE_READ_BYTES, CallerBody } from '../../../edge/http/caller-body.ts';
import type { Session } from '../../../edge/ledger/session.ts';
import { BODY_IDLE_MS } from '../../../edge/limits.ts';
import { Relay } from '../../../edge/routing/relay.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok } from '../../../shared/result.ts';
import { SEAL_SEGMENT_BYTES } from '../../../shared/seal/limits.ts';
import { BODY_BYTES, BUFFERED_BODY_BYTES } from '../../../shared/speech/limits.ts';
import { makeContext } from '../../fake/request-context.ts';

const chunkOf = (size: number, value: number) => new Uint8Array(size).fill(value);

/** A clock that rings when the test says so. */
function makeClock() {
  const rings: (() => void)[] = [];
  const runtime: Runtime = {
    now: () => 1_000,
    random: () => 0.5,
    after: () => {
      let ring = () => {};
      const promise = new Promise<typeof late>((resolve) => {
        ring = () => resolve(late);
      });
      rings.push(ring);
      return { rings: promise, cancel: () => rings.splice(rings.indexOf(ring), 1) };
    },
  };
  return {
    runtime,
    ring: () => {
      for (const one of rings.splice(0)) one();
    },
    waiting: () => rings.length,
  };
}

/** A body whose chunks the test pushes. */
function makeSource() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let pulls = 0;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>(
    {
      start: (own) => {
        controller = own;
      },
      pull: () => {
        pulls += 1;
      },
      cancel: () => {
        cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return {
    stream,
    push: (chunk: Uint8Array) => controller?.enqueue(chunk),
    end: () => controller?.close(),
    break: () => controller?.error(new Error('reset')),
    pulls: () => pulls,
    cancelled: () => cancelled,
  };
}

async function readAll(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

describe('C6 the body of a caller', () => {
  it('arrives whole, byte for byte', async () => {
    const source = makeSource();
    const body = new CallerBody(source.stream, makeClock().runtime);
    const read = readAll(body.open());
    source.push(chunkOf(10, 1));
    source.push(chunkOf(20, 2));
    source.end();
    expect([...(await read)]).toEqual([...chunkOf(10, 1), ...chunkOf(20, 2)]);
    expect(body.received).toBe(30);
    expect(body.endedAt).toBe(1_000);
  });

  it('is read on demand only', () => {
    const source = makeSource();
    new CallerBody(source.stream, makeClock().runtime).open();
    expect(source.pulls()).toBe(0);
  });

  it('can be replayed from its first byte while small, also after a reader stopped', async () => {
    const source = makeSource();
    const body = new CallerBody(source.stream, makeClock().runtime);
    const first = body.open().getReader();
    source.push(chunkOf(10, 1));
    await first.read();
    const pending = first.read();
    const second = readAll(body.open());
    source.push(chunkOf(10, 2));
    source.end();
    expect([...(await second)]).toEqual([...chunkOf(10, 1), ...chunkOf(10, 2)]);
    expect(body.replayable).toBe(true);
    await first.cancel();
    await pending.catch(() => {});
  });

  it.each([
    ['fast', 0, [BODY_LARGE_READ_BYTES - SEAL_SEGMENT_BYTES, BODY_LARGE_READ_BYTES]],
    ['slow', 100, [SEAL_SEGMENT_BYTES, SEAL_SEGMENT_BYTES]],
  ])('%s after its first segment is read with the buffer for its pace', async (_, tookMs, expected) => {
    const sizes: number[] = [];
    let time = 1_000;
    const stream = new ReadableStream({
      type: 'bytes',
      pull: (controller: ReadableByteStreamController) => {
        const request = controller.byobRequest;
        const size = request?.view?.byteLength ?? 0;
        time += tookMs;
        sizes.push(size);
        request?.respond(size);
      },
    });
    const body = new CallerBody(stream, { ...makeClock().runtime, now: () => time });
    const reader = body.open().getReader();
    for (let read = 0; read < 3; read += 1) await reader.read();
    expect(sizes.slice(0, 3)).toEqual([SEAL_SEGMENT_BYTES, ...expected]);
    body.cancel();
  });

  it('cannot once it exceeds the buffer', async () => {
    const source = makeSource();
    const body = new CallerBody(source.stream, makeClock().runtime);
    const reader = body.open().getReader();
    source.push(chunkOf(BUFFERED_BODY_BYTES + 1, 1));
    await reader.read();
    expect(body.replayable).toBe(false);
  });

  it('held for a look is all there afterwards', async () => {
    const source = makeSource();
    const body = new CallerBody(source.stream, makeClock().runtime);
    const looked: number[] = [];
    for (const size of [1, 2, 3]) source.push(chunkOf(size, size));
    source.end();
    for await (const chunk of body.prefix()) if (looked.push(chunk.length) === 2) break;
    expect(body.refusal).toBeUndefined();
    expect(looked).toEqual([1, 2]);
    expect((await readAll(body.open())).length).toBe(6);
  });

  it('that stands still is client_slow', async () => {
    const clock = makeClock();
    const source = makeSource();
    const body = new CallerBody(source.stream, clock.runtime);
    const read = readAll(body.open());
    source.push(chunkOf(10, 1));
    while (clock.waiting() === 0 || body.received === 0) await Promise.resolve();
    clock.ring();
    await expect(read).rejects.toThrow('client_slow');
    expect(await body.failed).toMatchObject({
      reason: 'client_slow',
      params: { limit: BODY_IDLE_MS / 1_000 },
    });
    await body.discard();
    expect(source.cancelled()).toBe(true);
  });

  it('is not slow while no consumer reads', async () => {
    const clock = makeClock();
    const source = makeSource();
    const body = new CallerBody(source.stream, clock.runtime);
    const reader = body.open().getReader();
    source.push(chunkOf(10, 1));
    await reader.read();
    expect(clock.waiting()).toBe(0);
  });

  it('over the bound is body_too_large, at the first byte too many', async () => {
    const source = makeSource();
    const body = new CallerBody(source.stream, makeClock().runtime);
    const reader = body.open().getReader();
    const piece = chunkOf(16 * 1_024 * 1_024, 1);
    for (let sent = 0; sent < BODY_BYTES; sent += piece.length) {
      source.push(piece);
      await reader.read();
    }
    source.push(chunkOf(1, 1));
    await expect(reader.read()).rejects.toThrow('body_too_large');
    expect(await body.failed).toMatchObject({ reason: 'body_too_large' });
  });

  it('that is cancelled half-way never looks complete to the agent', async () => {
    const source = makeSource();
    const body = new CallerBody(source.stream, makeClock().runtime);
    const reader = body.open().getReader();
    source.push(chunkOf(10, 1));
    await reader.read();
    const next = reader.read();
    body.cancel();
    await expect(next).rejects.toThrow('cancelled');
  });

  it('is drained when unwanted, so that the caller receives the refusal', async () => {
    const source = makeSource();
    const body = new CallerBody(source.stream, makeClock().runtime);
    const reader = body.open().getReader();
    source.push(chunkOf(10, 1));
    await reader.read();
    const discarded = body.discard();
    source.push(chunkOf(10, 2));
    source.push(chunkOf(10, 3));
    source.end();
    await discarded;
    await expect(reader.read()).rejects.toThrow('cancelled');
  });

  it('that breaks is form_invalid', async () => {
    const source = makeSource();
    const body = new CallerBody(source.stream, makeClock().runtime);
    const read = readAll(body.open());
    source.break();
    await expect(read).rejects.toThrow('form_invalid');
    expect(body.isCut).toBe(true);
  });
});

describe('C6 a caller that goes away', () => {
  function makeRelay(from: ReadableStream<Uint8Array> | null = null) {
    const { runtime } = makeClock();
    const ends: unknown[] = [];
    const session = { claims: { audit: 'buffered' }, subject: {}, end: async (ending: unknown) => ends.push(ending) };
    const context = { ...makeContext({}, runtime).context };
    const request = {
      task: 'infer',
      hints: { model: 'm', language: undefined },
      head: {},
      read: () => undefined,
    } as const;
    const body = new CallerBody(from, runtime);
    const relay = new Relay(session as unknown as Session, body, request, context);
    return { relay, ends, body };
  }

  it('ends its request once, gone before or after it is watched', () => {
    const gone = { status: 499, reason: 'client_gone', agent: undefined, bytes: 0 };
    const caller = new AbortController();
    const [early, later] = [makeRelay(), makeRelay()];
    later.relay.watch(caller.signal);
    caller.abort();
    early.relay.watch(caller.signal);
    expect([early.ends, later.ends]).toEqual([[gone], [gone]]);
  });

  it('during its upload is recorded as gone', async () => {
    const source = makeSource();
    const { relay, ends, body } = makeRelay(source.stream);
    source.break();
    await expect(readAll(body.open())).rejects.toThrow('form_invalid');
    await relay.end(no(refuse('form_invalid')));
    expect(ends).toMatchObject([{ status: 499, reason: 'client_gone' }]);
  });

  it('is not watched once its request has ended', async () => {
    const caller = new AbortController();
    const { relay, ends } = makeRelay();
    relay.watch(caller.signal);
    await relay.end(ok({ revision: 'r', durationSeconds: 1 }));
    caller.abort();
    expect(ends).toMatchObject([{ status: 200 }]);
  });
});
