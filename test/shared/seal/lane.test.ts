import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packMessages, unpackMessages } from '../../../shared/seal/pack.ts';
import { createOpener, type Opener, SEAL_FRAMES_MAX } from '../../../shared/seal/records.ts';
import {
  agentCounters,
  edgeCounters,
  isNumber,
  NUMBER_BYTES,
  numberAt,
  openSealedSession,
  SESSION_REQUESTS_MAX,
  type SessionKeys,
} from '../../../shared/seal/sealed-session.ts';
import { generateSealKey, setupRecipient, setupSender } from '../../../shared/seal/setup.ts';
import {
  encodeHeader,
  frameKey,
  frameNonce,
  headerLength,
  writeHeader,
  writeNonce,
} from '../../../shared/seal/sframe.ts';
import { suites } from '../../../shared/seal/suites.ts';
import { aeads } from './node-aead.ts';

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (...texts: string[]) => texts.map((one) => new TextEncoder().encode(one));
const [request, answer] = [new Uint8Array(64).fill(1), new Uint8Array(64).fill(2)];

describe.each(aeads)('C5 A21 a lane with %s', (_, aead) => {
  const makeLane = async (): Promise<SessionKeys> => ({
    suite: 5,
    request: await frameKey(request, suites[5], 0n, aead),
    answer: await frameKey(answer, suites[5], 0n, aead),
  });
  const detailOf = async (opener: Opener, record: Uint8Array) => {
    const opened = await opener.openWhole(record);
    return opened.ok ? opened.value.map(({ plaintext, final }) => [text(plaintext), final]) : opened.refusal.detail;
  };

  it('carries many requests and answers, several messages in a record', async () => {
    const lane = await makeLane();
    for (const number of [1, 2, 700, SESSION_REQUESTS_MAX]) {
      const [caller, agent] = [edgeCounters(lane, number), agentCounters(lane, number)];
      const first = await caller.sealer.pack(bytes('facts', 'head', ''), false);
      const last = await caller.sealer.seal(bytes('body')[0] as Uint8Array, true);
      expect(first.length).toBeGreaterThanOrEqual(NUMBER_BYTES);
      expect(numberAt(first.subarray(0, NUMBER_BYTES))).toBe(number);
      expect(await detailOf(agent.opener, Buffer.concat([first, last]))).toEqual([
        ['facts', false],
        ['head', false],
        ['', false],
        ['body', true],
      ]);
      expect(agent.opener.finished()).toBe(true);
      const said = await agent.sealer.pack(bytes('ready', 'final'), true);
      expect(await detailOf(caller.opener, said)).toEqual([
        ['ready', false],
        ['final', true],
      ]);
    }
  });

  it('a record opens only in its own request, direction and position', async () => {
    const lane = await makeLane();
    const [one, two] = [edgeCounters(lane, 1), edgeCounters(lane, 2)];
    const [first, second] = [
      await one.sealer.seal(new Uint8Array(3), false),
      await one.sealer.seal(new Uint8Array(), true),
    ];
    expect(await detailOf(agentCounters(lane, 2).opener, first)).toBe('record 0: counter out of order');
    expect(await detailOf(agentCounters(lane, 1).opener, second)).toBe('record 0: counter out of order');
    expect(await detailOf(one.opener, first)).toBe('record 0: not authentic');
    // Requests do not share counters.
    expect(numberAt(await two.sealer.seal(new Uint8Array(), false))).toBe(2);
    expect(numberAt(second)).toBeUndefined();
  });

  it('a changed flag, and messages that are not whole, are refused', async () => {
    const lane = await makeLane();
    const { sealer } = edgeCounters(lane, 5);
    const packed = await sealer.pack(bytes('a'), false);
    const at = packed.length < 64 ? 1 : 2;
    for (const flag of [0, 1, 3]) {
      const changed = packed.map((byte, index) => (index === at ? flag : byte));
      expect(await detailOf(agentCounters(lane, 5).opener, changed)).toBe('record 0: not authentic');
    }
    const unknown = packed.map((byte, index) => (index === at ? 4 : byte));
    expect(await detailOf(agentCounters(lane, 5).opener, unknown)).toBe('record 0: unknown flag');
    expect(await detailOf(agentCounters(lane, 6).opener, await edgeCounters(lane, 6).sealer.pack([], false))).toBe(
      'record 0: malformed messages',
    );
  });

  it('a peer without lanes refuses packed records', async () => {
    const { sealer } = edgeCounters(await makeLane(), 1);
    const opener = await createOpener(request, 5, aead);
    expect(await detailOf(opener, await sealer.pack(bytes('a'), false))).toBe('record 0: unknown flag');
  });
});

function headerOf(counter: number): Uint8Array {
  const header = new Uint8Array(headerLength(counter));
  expect(writeHeader(header, 0, counter)).toBe(header.length);
  return header;
}

describe('C5 the keys of a lane', () => {
  it('agree on both sides, bound to the lane’s ticket, unlike a request’s', async () => {
    const { publicJwk, privateKey } = await generateSealKey();
    const sender = await setupSender(publicJwk, 5, 'attestation');
    const recipient = await setupRecipient(privateKey, sender.enc, 5, 'attestation');
    if (!recipient.ok) throw new Error('no set-up');
    const [ours, theirs, other] = await Promise.all([
      openSealedSession(sender, 'ticket'),
      openSealedSession(recipient.value, 'ticket'),
      openSealedSession(recipient.value, 'another'),
    ]);
    const record = await edgeCounters(ours, 1).sealer.seal(new Uint8Array(1), true);
    expect((await agentCounters(theirs, 1).opener.openWhole(record)).ok).toBe(true);
    expect((await agentCounters(other, 1).opener.openWhole(record)).ok).toBe(false);
    const [lane, plain] = await Promise.all([sender.laneKeysFor('ticket'), sender.keysFor('ticket')]);
    const all = [lane.request, lane.answer, plain.request, plain.answer].map((key) => Buffer.from(key).toString('hex'));
    expect(new Set(all).size).toBe(4);
  });

  it('numbers are from 1 to the bound; counters stay exact', () => {
    const most = SESSION_REQUESTS_MAX;
    expect([0, 1, 1.5, most, most + 1].map(isNumber)).toEqual([false, true, false, true, false]);
    expect(Number.isSafeInteger((most + 1) * SEAL_FRAMES_MAX)).toBe(true);
  });

  it('headers and nonces of exact numbers are those of RFC 9605', () => {
    const salt = Uint8Array.from({ length: 12 }, (_, at) => 17 * at);
    fc.assert(
      fc.property(
        fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constantFrom(0, 7, 8, 255, 256, 2 ** 24, 2 ** 48)),
        (counter) => {
          expect(headerOf(counter)).toEqual(encodeHeader(0n, BigInt(counter)));
          expect(writeNonce(new Uint8Array(salt.length), salt, counter)).toEqual(frameNonce(salt, BigInt(counter)));
        },
      ),
    );
    expect(() => headerOf(2 ** 53)).toThrow(RangeError);
  });
});

describe('A21 several messages as one', () => {
  it('come back; any other bytes are refused', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { minLength: 1 }), (messages) => {
        const packed = packMessages(messages);
        expect(unpackMessages(packed)?.map((one) => [...one])).toEqual(messages.map((one) => [...one]));
        expect(unpackMessages(packed.subarray(0, -1))?.length ?? 0).toBeLessThan(messages.length);
      }),
    );
    expect(unpackMessages(new Uint8Array())).toBeUndefined();
    expect(unpackMessages(Uint8Array.of(0x40, 0x01, 7))).toBeUndefined();
  });
});
