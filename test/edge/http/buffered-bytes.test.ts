import { describe, expect, it } from 'vitest';
import { late, type Runtime, realRuntime } from '../../../edge/clock.ts';
import {
  BUFFERED_BYTES_IN_FLIGHT,
  BUFFERED_MS,
  BufferedBytes,
  bufferedInFlight,
} from '../../../edge/http/buffered-bytes.ts';
import { CallerBody, HINTS_BYTES, HINTS_MS } from '../../../edge/http/caller-body.ts';
import { readHints } from '../../../edge/protocol/hints.ts';
import { transcribe } from '../../../edge/transcribe/transcribe.ts';
import { type AuditEvent, auditEvent } from '../../../shared/audit/event.ts';
import { refuse } from '../../../shared/refusal.ts';
import { SEAL_SEGMENT_BYTES } from '../../../shared/seal/limits.ts';
import { BUFFERED_BODY_BYTES } from '../../../shared/speech/limits.ts';
import type { RequestClass } from '../../../shared/tenant/claims.ts';
import { ask, readRefusal, startAgent } from '../../fake/network.ts';
import { makeContext } from '../../fake/request-context.ts';
import { makeToken } from '../authority.ts';

const bound = BUFFERED_BODY_BYTES;
const searched = HINTS_BYTES;
const unique = () => crypto.randomUUID().slice(0, 8);
const quiet: Runtime = { ...realRuntime, after: () => ({ rings: new Promise(() => {}), cancel: () => {} }) };
const untold = { model: undefined, language: undefined, class: undefined };
const path = '/v1/audio/transcriptions';
const never = () => new Promise<never>(() => {});

/** Behind the delimiter that ends a part; not needed to know where the part ends. */
const LINE_END = 2;

/** A form of exactly `total` bytes whose field `model` ends at byte `end`, its delimiter included. */
function makeForm(total: number, end: number | undefined): Uint8Array<ArrayBuffer> {
  const file = '--X\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';
  const model = '\r\n--X\r\nContent-Disposition: form-data; name="model"\r\n\r\nreference-en\r\n--X\r\n';
  const more = 'Content-Disposition: form-data; name="more"; filename="b.wav"\r\n\r\n';
  const tail = '\r\n--X--\r\n';
  const form = new Uint8Array(total).fill(0x61);
  const write = (text: string, at: number) => new TextEncoder().encodeInto(text, form.subarray(at));
  write(file, 0);
  if (end !== undefined) {
    write(model, end - model.length);
    write(more, end);
  }
  write(tail, total - tail.length);
  return form;
}

function cut(bytes: Uint8Array, next: () => number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      const size = next();
      controller.enqueue(bytes.subarray(at, at + size));
      at += size;
    },
  });
}

/** Buffers the prefix of a body. False when it is refused. */
async function hold(body: CallerBody): Promise<boolean> {
  for await (const _ of body.prefix());
  return body.refusal === undefined;
}

/** Sizes of the pieces: fixed ones around the bound, and random ones. */
function* cuttings(): Generator<() => number> {
  for (const size of [65_537, searched - 1, searched, searched + 1, 2 * searched]) yield () => size;
  let seed = 11;
  const chance = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  for (let round = 0; round < 3; round += 1) yield () => 1 + Math.floor(chance() ** 3 * 2_400_000);
}

describe('C6 the first 8 MiB of a body decide, however it arrives', () => {
  it.each([
    ['of the bound, the model at its end', searched, searched - 100, 'reference-en'],
    ['of the bound, without a model', searched, undefined, 'field_missing'],
    ['over the bound by one, the model at its very end', searched + 1, searched - 20, 'reference-en'],
    ['over the bound, the model whole within it', searched + 200_000, searched + LINE_END, 'reference-en'],
    ['over the bound, the model a byte behind it', searched + 200_000, searched + LINE_END + 1, 'hints_missing'],
    ['over the bound, without a model', searched + 200_000, undefined, 'hints_missing'],
  ])('a form %s', async (_, total, end, expected) => {
    const form = makeForm(total, end);
    for (const next of cuttings()) {
      const body = new CallerBody(cut(form, next), quiet);
      const hints = await readHints(untold, body, { boundary: 'X', byDefault: undefined });
      expect(hints.ok ? hints.value.model : hints.refusal.reason).toBe(expected);
      body.cancel();
    }
  });

  it('a form whose model is known is searched for a language in 1 MiB', async () => {
    const form = makeForm(4 * bound, 1_000);
    const body = new CallerBody(
      cut(form, () => 65_536),
      quiet,
    );
    const hints = await readHints(untold, body, { boundary: 'X', byDefault: undefined });
    expect(hints).toMatchObject({ ok: true, value: { model: 'reference-en', language: undefined } });
    expect(body.received).toBeLessThanOrEqual(bound + 65_536);
    body.cancel();
  });

  it('a form that ends early without a model, and bytes behind it', async () => {
    const form = new Uint8Array(2 * bound).fill(0x61);
    new TextEncoder().encodeInto('--X\r\nContent-Disposition: form-data; name="prompt"\r\n\r\na\r\n--X--\r\n', form);
    for (const next of cuttings()) {
      const body = new CallerBody(cut(form, next), quiet);
      expect(await readHints(untold, body, { boundary: 'X', byDefault: undefined })).toMatchObject({
        ok: false,
        refusal: { reason: 'field_missing' },
      });
      body.cancel();
    }
  });
});

describe('C6 the bytes that an isolate holds', () => {
  it('are bounded over all bodies, and come back', async () => {
    const before = bufferedInFlight.total;
    const bodies: CallerBody[] = [];
    const form = makeForm(bound, undefined);
    let refused: CallerBody | undefined;
    for (let n = 0; n <= BUFFERED_BYTES_IN_FLIGHT / bound && !refused; n += 1) {
      const body = new CallerBody(
        cut(form, () => 65_536),
        quiet,
      );
      bodies.push(body);
      if (!(await hold(body))) refused = body;
    }
    expect(refused?.refusal).toEqual(refuse('edge_busy'));
    expect(bodies.length).toBeGreaterThan((BUFFERED_BYTES_IN_FLIGHT - before) / bound - 1);
    expect(bufferedInFlight.total).toBeLessThanOrEqual(BUFFERED_BYTES_IN_FLIGHT + SEAL_SEGMENT_BYTES);
    // One whose model is known goes on all the same; it is only kept no more.
    const streaming = new CallerBody(
      cut(makeForm(bound / 2, undefined), () => 65_536),
      quiet,
    );
    let received = 0;
    for await (const piece of streaming.open()) received += piece.length;
    expect(received).toBe(bound / 2);
    expect(streaming.replayable).toBe(false);

    for (const body of [...bodies, streaming]) body.cancel();
    // At the bound the isolate forgets bytes of requests that earlier files abandoned.
    expect(bufferedInFlight.total).toBeLessThanOrEqual(before);
    const next = new CallerBody(
      cut(form, () => 65_536),
      quiet,
    );
    expect(await hold(next)).toBe(true);
    next.cancel();
  });

  it('are released as they are sent, for bodies too long to buffer', async () => {
    const before = bufferedInFlight.total;
    const body = new CallerBody(
      cut(makeForm(3 * bound, undefined), () => 65_536),
      quiet,
    );
    let most = 0;
    for await (const _ of body.open()) most = Math.max(most, bufferedInFlight.total - before);
    expect(most).toBeLessThanOrEqual(bound + 65_536);
    expect(bufferedInFlight.total - before).toBeLessThanOrEqual(65_536);
    body.cancel();
    expect(bufferedInFlight.total).toBe(before);
  });

  it('R13 A2 a realtime body displaces batch bodies that are still looked through', async () => {
    const before = bufferedInFlight.total;
    const form = makeForm(bound, undefined);
    const open = (name: RequestClass, tenant: string) =>
      new CallerBody(
        cut(form, () => 65_536),
        quiet,
        { class: name, tenant },
      );
    const batch: CallerBody[] = [];
    while (bufferedInFlight.total + bound <= BUFFERED_BYTES_IN_FLIGHT) {
      const body = open('batch', 'many');
      batch.push(body);
      expect(await hold(body)).toBe(true);
    }
    const more = open('batch', 'many');
    expect(await hold(more)).toBe(false);
    more.cancel();
    const urgent = open('realtime', 'few');
    expect(await hold(urgent)).toBe(true);
    expect(urgent.replayable).toBe(true);
    expect(batch.at(-1)?.refusal).toEqual(refuse('edge_busy'));
    expect(batch[0]?.refusal).toBeUndefined();
    for (const body of [...batch, urgent]) body.cancel();
    expect(bufferedInFlight.total).toBe(before);
  });

  it('R13 a displaced body that an agent has is sent on, and kept no more', async () => {
    const before = bufferedInFlight.total;
    const holder = { class: 'batch', tenant: 'many' } as const;
    const sent = new CallerBody(
      cut(makeForm(bound, undefined), () => 65_536),
      quiet,
      holder,
    );
    const reader = sent.open().getReader();
    await reader.read();
    const fixed = { bytes: 0, since: 0, releasable: () => false, release: () => {} };
    const others = { ...fixed, ...holder };
    const urgent = { ...fixed, class: 'realtime' as const, tenant: 'few' };
    bufferedInFlight.add(others, 8 * bound, 0);
    expect(bufferedInFlight.add(urgent, BUFFERED_BYTES_IN_FLIGHT - 8 * bound - before, 0)).toBe(true);
    expect(sent.replayable).toBe(false);
    bufferedInFlight.remove(others, others.bytes);
    bufferedInFlight.remove(urgent, urgent.bytes);
    let received = 65_536;
    for (let step = await reader.read(); !step.done; step = await reader.read()) received += step.value.length;
    expect(received).toBe(bound);
    sent.cancel();
    expect(bufferedInFlight.total).toBe(before);
  });

  it('those of vanished requests are released once memory is needed', () => {
    const held = new BufferedBytes(100);
    const hold = () => ({
      ...{ class: 'default' as const, tenant: 'a', bytes: 0, since: 0 },
      ...{ releasable: () => false, release: () => {} },
    });
    const [vanished, alive] = [hold(), hold()];
    held.add(vanished, 60, 0);
    expect(held.add(alive, 60, BUFFERED_MS)).toBe(false);
    expect(held.add(alive, 1, BUFFERED_MS + 1)).toBe(true);
    held.remove(vanished, 60);
    held.remove(alive, 61);
    expect(held.total).toBe(0);
  });
});

describe('C4 C6 the place comes before the body', () => {
  const makeRequest = async (claims: Record<string, unknown>, body: ReadableStream<Uint8Array>) =>
    new Request(`http://edge.test${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await makeToken(claims)}`,
        'content-type': 'multipart/form-data; boundary=X',
      },
      body,
      ...({ duplex: 'half' } as object),
    });

  it('reads no byte of a request that gets no slot', async () => {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          pulled += 1;
          controller.enqueue(new Uint8Array(10));
        },
      },
      { highWaterMark: 0 },
    );
    const full = async () => ({ ok: false, refusal: refuse('allowance_concurrent', { limit: 1 }) }) as const;
    const { context } = makeContext({ take: full, record: async () => {} }, realRuntime);
    // A tenant of its own: the isolate may hold a reserve of another one, and then does not call the gate.
    const answer = await transcribe(await makeRequest({ tenant: `t-${unique()}` }, body), context);
    expect(await readRefusal(answer)).toMatchObject({ status: 429, code: 'allowance_concurrent' });
    expect(pulled).toBe(0);
  });

  it('a form without model in time is hints_late, its memory released', async () => {
    const hasty: Runtime = {
      ...realRuntime,
      after: (ms) => (ms === HINTS_MS ? { rings: Promise.resolve(late), cancel: () => {} } : realRuntime.after(ms)),
    };
    const settled: unknown[][] = [];
    const gate = {
      take: async () => ({ ok: true, value: undefined }) as const,
      settle: async (...given: unknown[]) => void settled.push(given),
    };
    const before = bufferedInFlight.total;
    const { context, settled: done } = makeContext(gate, hasty);
    const body = new ReadableStream<Uint8Array>({ pull: never });
    const tenant = `t-${unique()}`;
    const answer = await transcribe(await makeRequest({ tenant, audit: 'strict' }, body), context);
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(await readRefusal(answer)).toMatchObject({ status: 408, code: 'hints_late' });
    await done();
    expect(settled).toMatchObject([[context.id, 0, [{ type: 'inference.complete', reason: 'hints_late' }]]]);
    expect(bufferedInFlight.total).toBe(before);
  });

  it('A1 the attempt has the known fields, the end the rest', async () => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    await startAgent(model);
    const authorization = `Bearer ${await makeToken({ tenant, audit: 'strict' })}`;
    const send = (fields: readonly (readonly [string, string])[], query = '') => {
      const form = new FormData();
      form.append('file', new Blob([new Uint8Array(100)]), 'x.wav');
      for (const [name, value] of fields) form.append(name, value);
      return ask(`${path}${query}`, { method: 'POST', headers: { authorization }, body: form });
    };
    await (await send([['model', model]])).text();
    await (await send([['model', model]], `?model=${model}`)).text();
    expect((await send([])).status).toBe(400);
    const answer = await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers: { authorization } });
    const { rows } = (await answer.json()) as { rows: { event: unknown }[] };
    const told = rows
      .map(({ event }): AuditEvent => auditEvent.parse(event))
      .flatMap((event) =>
        event.type === 'inference.attempt' || event.type === 'inference.complete' ? [[event.type, event.model]] : [],
      );
    expect(told).toEqual([
      ['inference.attempt', undefined],
      ['inference.complete', model],
      ['inference.attempt', model],
      ['inference.complete', model],
      ['inference.attempt', undefined],
      ['inference.complete', undefined],
    ]);
  });
});
