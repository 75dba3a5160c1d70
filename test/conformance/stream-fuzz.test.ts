// Random wire input: no parser throws, none retains its input, and well-formed messages parse. With
// SEEDS=10000 over 110,000 inputs in all; those of the other liveProtocols add to them.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Backlog } from '../../edge/client/backlog.ts';
import { auricleStream, clientMessage } from '../../edge/protocol/auricle-stream.ts';
import type { ClientCommand, LiveProtocol } from '../../edge/protocol/live-protocol.ts';
import type { Settings } from '../../edge/settings.ts';
import { decodeLinkEvent } from '../../edge/stream/link-event.ts';
import { openResume, sealResume } from '../../edge/stream/resume-token.ts';
import { isReason } from '../../shared/refusal.ts';
import { createOpener, createSealer } from '../../shared/seal/records.ts';
import { linkControl, linkEvent } from '../../shared/stream/link.ts';
import { decodeLinkRecord, encodeAudio, encodeControl } from '../../shared/stream/link-record.ts';
import { runs } from '../seeds.ts';

/** A tenth of what CI does. */
const numRuns = (most: number) => ({ numRuns: runs(most / 10, most) });
const NOW = 1_760_000_000_000;

/** JSON that looks like a message: the right names, with anything as their values. */
const names = ['type', 'v', 'id', 'model', 'format', 'options', 'resume', 'next', 'seen', 'position', 'time', 'index'];
const types = ['start', 'finalize', 'clear', 'options', 'ping', 'end', 'heard', 'checkpoint', 'interim', 'segment'];
const almost = fc.dictionary(
  fc.constantFrom(...names, 'audio', 'session', 'state', 'words'),
  fc.jsonValue({ maxDepth: 3 }),
);
const message = fc.tuple(almost, fc.constantFrom(...types)).map(([json, type]) => JSON.stringify({ ...json, type }));
const text = fc.oneof(fc.string({ maxLength: 60 }), fc.json({ maxDepth: 3 }), message, message);
const bytes = fc.uint8Array({ maxLength: 80 });
const frame = fc.oneof(text, text, bytes);

const format = { encoding: 'linear16', rate: 16_000, channels: 1 } as const;
const start = JSON.stringify({ type: 'start', v: 1, model: 'm', format });

const url = new URL('http://edge.test/v1/stream');
const make = (): LiveProtocol => unwrap(auricleStream(url, new Headers()));

function unwrap<T>(result: { ok: true; value: T } | { ok: false; refusal: unknown }): T {
  if (!result.ok) throw new Error(JSON.stringify(result.refusal));
  return result.value;
}

const kinds = new Set(['start', 'audio', 'options', 'finalize', 'clear', 'alive', 'end', 'reply', 'close']);

/** Reports whether a session can take a step unchanged. */
function isSound(step: ClientCommand): boolean {
  if (!kinds.has(step.type)) return false;
  if (step.type === 'audio') {
    const { audio, position = 0 } = step;
    return audio instanceof Uint8Array && Number.isSafeInteger(position) && position >= 0 && position < 2 ** 48;
  }
  if (step.type === 'close') return isReason(step.refusal.reason);
  if (step.type === 'finalize' || step.type === 'clear') return Number.isSafeInteger(step.id) && step.id >= 0;
  return true;
}

describe('fuzzing of client messages', () => {
  it('any /v1/stream message is parsed or refused: with SEEDS=10000 60,000 inputs', {
    timeout: 60_000,
  }, () => {
    const session = { id: 's', request: crypto.randomUUID(), now: NOW, expires: NOW + 3_600_000 };
    let [refused, understood] = [0, 0];
    fc.assert(
      fc.property(fc.array(frame, { minLength: 10, maxLength: 10 }), (frames) => {
        const protocol = make();
        protocol.open(session);
        for (const one of [start, ...frames]) {
          for (const step of protocol.receive(one, NOW)) {
            expect(isSound(step)).toBe(true);
            if (step.type !== 'close') {
              understood += 1;
              continue;
            }
            refused += 1;
            const { code, reason } = protocol.close({ refusal: step.refusal }, NOW);
            expect(code).toBeGreaterThanOrEqual(4_000);
            expect(new TextEncoder().encode(reason).length).toBeLessThanOrEqual(123);
          }
        }
      }),
      numRuns(6_000),
    );
    expect(refused).toBeGreaterThan(500);
    expect(understood).toBeGreaterThan(500);
  });

  it('controls of /v1/stream are understood as they are', () => {
    const protocol = make();
    protocol.open({ id: 's', request: 'r', now: NOW, expires: NOW });
    protocol.receive(start, NOW);
    const said = fc.oneof(
      fc.record({ type: fc.constantFrom('finalize', 'clear'), id: fc.integer({ min: 0, max: 2 ** 31 }) }),
      fc.record({ type: fc.constant('end') }),
      fc.record({ type: fc.constant('options'), options: fc.record({ interim: fc.boolean() }) }),
    );
    fc.assert(
      fc.property(said, (one) => {
        expect(clientMessage.safeParse(one).success).toBe(true);
        expect(protocol.receive(JSON.stringify(one), NOW)[0]).toMatchObject(one);
      }),
      numRuns(5_000),
    );
  });

  it('positions go over the wire and come back', () => {
    const protocol = make();
    protocol.open({ id: 's', request: 'r', now: NOW, expires: NOW });
    protocol.receive(start, NOW);
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 48 - 1 }), bytes, (position, audio) => {
        const record = encodeAudio(position, audio);
        expect(decodeLinkRecord(record)).toEqual({ ok: true, value: { kind: 'audio', position, audio } });
        // A client's message is the same without the byte of kind.
        expect(protocol.receive(record.subarray(1), NOW)).toEqual([{ type: 'audio', audio, position }]);
      }),
      numRuns(10_000),
    );
  });

  it('a resume token that was changed anywhere is none', async () => {
    const settings = { ticketKey: { kty: 'EC', d: 'c2VjcmV0' } } as unknown as Settings;
    const token = { v: 1, session: 's', tenant: 't', model: 'm', format, began: 0, until: NOW + 1 } as const;
    const sealed = await sealResume(token, settings);
    expect(openResume(sealed, settings, NOW)).toEqual({ ok: true, value: token });
    const bytesOf = Buffer.from(sealed, 'base64url');
    const changed = fc.tuple(fc.nat(bytesOf.length - 1), fc.integer({ min: 1, max: 255 })).map(([at, by]) => {
      const own = Buffer.from(bytesOf);
      own[at] = (own[at] as number) ^ by;
      return own.toString('base64url');
    });
    fc.assert(
      fc.property(fc.oneof(changed, fc.string({ maxLength: 100 }), fc.base64String({ maxLength: 400 })), (one) => {
        expect(openResume(one, settings, NOW)).toMatchObject({ ok: false, refusal: { reason: 'resume_invalid' } });
      }),
      numRuns(5_000),
    );
    expect(openResume(sealed, settings, NOW + 2)).toMatchObject({ ok: false });
  });
});

describe('fuzzing of the link', () => {
  const control = fc.oneof(
    fc.record({ type: fc.constantFrom('finalize', 'clear'), id: fc.nat(), position: fc.nat() }),
    fc.record({ type: fc.constant('end') }),
  );

  it('records of the edge: any bytes, and any control', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          bytes,
          text.map((one) => Buffer.concat([Buffer.of(0), Buffer.from(one)])),
        ),
        (record) => {
          const read = decodeLinkRecord(record);
          if (read.ok)
            expect(read.value.kind === 'audio' || linkControl.safeParse(read.value.control).success).toBe(true);
          else expect(read.refusal.reason).toBe('seal_broken');
        },
      ),
      numRuns(10_000),
    );
    fc.assert(
      fc.property(control, (one) => {
        const said = linkControl.parse(JSON.parse(JSON.stringify(one)));
        expect(decodeLinkRecord(encodeControl(said))).toEqual({ ok: true, value: { kind: 'control', control: said } });
      }),
      numRuns(5_000),
    );
  });

  it('the hand-written reader of agent events agrees with the schema', () => {
    const number = fc.oneof(fc.nat(), fc.double(), fc.constant(-1), fc.constant('1'), fc.constant(null));
    const word = fc.record({ word: fc.string(), start: number, end: number, confidence: number });
    const event = fc.oneof(
      fc.record({ type: fc.constantFrom('heard', 'keepalive', 'drain'), position: number, time: number }),
      fc.record({ type: fc.constant('checkpoint'), position: number, time: number, index: number, state: fc.string() }),
      fc.record({
        type: fc.constant('interim'),
        ...{ index: number, start: number, end: number, stable: number, confidence: number },
        text: fc.oneof(fc.string(), number),
        words: fc.oneof(fc.array(word, { maxLength: 3 }), number),
      }),
    );
    let taken = 0;
    fc.assert(
      fc.property(event, (one) => {
        const json: unknown = JSON.parse(JSON.stringify(one));
        const read = decodeLinkEvent(new TextEncoder().encode(JSON.stringify(one)));
        expect(read !== undefined).toBe(linkEvent.safeParse(json).success);
        if (read) taken += 1;
      }),
      numRuns(10_000),
    );
    expect(taken).toBeGreaterThan(20);
    fc.assert(
      fc.property(
        fc.oneof(
          bytes,
          text.map((one) => Buffer.from(one)),
        ),
        (record) => {
          decodeLinkEvent(record);
        },
      ),
      numRuns(10_000),
    );
  });

  it('truncated or changed sealed records open unchanged or not at all', async () => {
    const key = new Uint8Array(64).fill(7);
    const cut = fc.record({ at: fc.nat(400), flip: fc.option(fc.nat(399)), size: fc.integer({ min: 1, max: 90 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(bytes, { minLength: 1, maxLength: 4 }), cut, async (plain, { at, flip, size }) => {
        const [sealer, opener] = [await createSealer(key, 5), await createOpener(key, 5)];
        const records = [];
        for (const [index, one] of plain.entries()) records.push(await sealer.seal(one, index === plain.length - 1));
        const wire = Buffer.concat(records).subarray(0, at);
        if (flip !== null && flip < wire.length) wire[flip] = (wire[flip] as number) ^ 1;
        const read: Uint8Array[] = [];
        for (let from = 0; from < wire.length; from += size) {
          const opened = await opener.openWhole(wire.subarray(from, from + size));
          if (!opened.ok) break;
          read.push(...opened.value.map(({ plaintext }) => plaintext));
        }
        expect(read).toEqual(plain.slice(0, read.length));
      }),
      numRuns(1_000),
    );
  });
});

describe('fuzzing of the client', () => {
  it('the client backlog sends every unsettled byte after any resume position', () => {
    const step = fc.oneof(
      fc.record({ push: fc.integer({ min: 1, max: 9 }) }),
      fc.record({ settle: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ goTo: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ send: fc.integer({ min: 1, max: 4 }) }),
      fc.record({ ask: fc.constant(true) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const backlog = new Backlog();
        const all: number[] = [];
        /** Position of the edge, which takes audio in order. */
        let [edge, asked] = [0, 0];
        const send = (most: number) => {
          for (let left = most; left > 0; left--) {
            const item = backlog.next(false);
            if (!item) return;
            if (!item.audio) continue;
            expect(item.position).toBeLessThanOrEqual(edge);
            expect([...item.audio]).toEqual(all.slice(item.position, item.position + item.audio.length));
            edge = Math.max(edge, item.position + item.audio.length);
          }
        };
        for (const one of steps) {
          if ('push' in one) {
            const audio = Uint8Array.from({ length: one.push }, (_, at) => (all.length + at) % 251);
            all.push(...audio);
            backlog.push(audio);
          } else if ('settle' in one) {
            backlog.settle(Math.floor(backlog.start + (edge - backlog.start) * one.settle));
          } else if ('goTo' in one) {
            edge = Math.floor(backlog.start + (backlog.end - backlog.start) * one.goTo);
            backlog.goTo(edge);
          } else if ('send' in one) send(one.send);
          else backlog.mark({ type: 'finalize', id: asked++ });
        }
        send(Number.POSITIVE_INFINITY);
        expect(edge).toBe(all.length);
        for (let id = 0; id < asked; id++) expect(backlog.answered('finalize', id)).toBe(true);
      }),
      numRuns(4_000),
    );
  });
});
