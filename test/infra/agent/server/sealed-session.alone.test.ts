import { generateKeyPair } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { sha256 } from '../../../../infra/pool/agent/identity/keys.ts';
import { SESSION_TICKET_S } from '../../../../infra/pool/agent/request/ticket.ts';
import { askShort, makeSession, type ShortRequest } from '../../../fake/edge.ts';
import { audioForm, joinSamples, multipart, silence, voice, wavFile } from '../fixtures.ts';
import { type Bench, startBench } from '../start-agent.ts';

vi.setConfig({ testTimeout: 40_000 });

let bench: Bench;
beforeAll(async () => {
  bench = await startBench({}, {});
});
afterAll(() => bench.stop());
afterEach(() => {
  bench.engine.gate = undefined;
});

const spoken = wavFile(joinSamples(silence(0.5), voice(1), silence(1)));
let numbers = 0;
const ask = (changes: Partial<ShortRequest> = {}) => {
  numbers += 1;
  return askShort({
    url: bench.agent.url,
    agent: 'agent-1',
    attestation: bench.agent.keys.current().token,
    edge: bench.edge,
    body: audioForm(spoken),
    contentType: multipart,
    lane: numbers,
    ...changes,
  });
};

const openSession = (claims: Record<string, unknown> = {}, key?: CryptoKey) =>
  makeSession({ agent: 'agent-1', attestation: bench.agent.keys.current().token, edge: bench.edge, claims }, key);
const seconds = () => Math.floor(Date.now() / 1_000);

describe('C5 requests in a sealed session', () => {
  it('are answered once each', async () => {
    const lane = await openSession();
    for (const number of [1, 5, 2]) {
      expect(await ask({ ...lane, lane: number })).toMatchObject({ status: 200, whole: true });
    }
    expect(await ask({ ...lane, lane: 5 })).toMatchObject({ status: 403, reason: 'ticket_replayed' });
    expect(await ask({ ...lane, lane: 6 })).toMatchObject({ status: 200, whole: true });
  });

  it('lanes of two sessions may have the same number', async () => {
    const [one, other] = [await openSession(), await openSession()];
    expect(await ask({ ...one, lane: 1 })).toMatchObject({ status: 200 });
    expect(await ask({ ...other, lane: 1 })).toMatchObject({ status: 200 });
  });

  it('get an answer in one piece when it is complete soon', async () => {
    const { events, inOnePiece } = await ask();
    expect(events.map(({ type }) => type)).toEqual(['ready', 'form', 'segment', 'final']);
    expect(inOnePiece).toBe(true);
  });

  it('get a slow or streamed answer as it is made', async () => {
    let open = () => {};
    bench.engine.gate = new Promise((resolve) => {
      open = () => resolve(undefined);
    });
    const types: string[] = [];
    const slow = ask({
      onEvent: ({ type }) => {
        types.push(type);
        open();
      },
    });
    expect(await slow).toMatchObject({ status: 200, whole: true, inOnePiece: false });
    expect(types[0]).toBe('ready');
    const streamed = await ask({ body: audioForm(spoken, [{ name: 'stream', value: 'true' }]) });
    expect(streamed).toMatchObject({ status: 200, whole: true, inOnePiece: false });
  });

  it('get a refusal in one piece', async () => {
    const { events, inOnePiece } = await ask({ body: audioForm(new Uint8Array(50)) });
    expect(events.at(-1)).toMatchObject({ type: 'refusal' });
    expect(inOnePiece).toBe(true);
  });
});

describe('C5 A21 a sealed session refuses', () => {
  it.each<[string, Record<string, unknown>]>([
    ['for another agent', { aud: 'agent-2' }],
    ['that has expired', { iat: seconds() - 700, exp: seconds() - 99 }],
    ['that lives too long', { exp: seconds() + SESSION_TICKET_S + 600 }],
    ['of the future', { iat: seconds() + 300, exp: seconds() + 600 }],
    ['of version 1', { v: 1 }],
    ['for an unknown suite', { suite: 4 }],
    ['with a key that is none', { enc: '' }],
  ])('a ticket %s', async (_, claims) => {
    expect(await ask({ ...(await openSession(claims)) })).toMatchObject({ status: 403, reason: 'ticket_invalid' });
  });

  it('a ticket that the edge did not sign', async () => {
    const { privateKey } = await generateKeyPair('ES256');
    expect(await ask(await openSession({}, privateKey))).toMatchObject({ status: 403, reason: 'ticket_invalid' });
  });

  it('a key that is no point of the curve', async () => {
    const lane = await openSession({ enc: Buffer.alloc(65, 4).toString('base64url') });
    expect(await ask(lane)).toMatchObject({ status: 400, reason: 'seal_broken' });
  });

  it('a ticket over another key than the seal’s', async () => {
    const [one, other] = [await openSession(), await openSession()];
    const mixed = { ticket: one.ticket, setup: other.setup };
    expect(await ask(mixed)).toMatchObject({ status: 403, reason: 'ticket_invalid' });
  });

  it('a ticket over another attestation', async () => {
    const lane = await openSession({ att: sha256('another') });
    expect(await ask(lane)).toMatchObject({ status: 421, reason: 'misdirected' });
  });

  it.each<[string, Record<string, unknown>]>([
    ['of another minute', { iat: seconds() - 200 }],
    ['of the future', { iat: seconds() + 200 }],
    ['without a tenant', { tenant: '' }],
    ['of an unknown class', { class: 'best' }],
    ['with a budget beyond all bounds', { deadlineMs: 1e12 }],
  ])('facts %s', async (_, claims) => {
    expect(await ask({ claims })).toMatchObject({ status: 403, reason: 'ticket_invalid' });
  });

  it('a model that is not here', async () => {
    expect(await ask({ claims: { model: 'other-en' } })).toMatchObject({ status: 421, reason: 'misdirected' });
  });

  it.each<[string, (record: Uint8Array) => Uint8Array]>([
    ['changed', (record) => record.map((byte, at) => (at === record.length - 1 ? byte ^ 1 : byte))],
    ['of no number', (record) => record.map((byte, at) => (at === 3 ? 0 : byte))],
    ['cut short', (record) => record.subarray(0, 10)],
  ])('a first record that is %s', async (_, change) => {
    const answer = await ask({ tamper: (record, at) => (at === 0 ? change(record) : undefined) });
    expect(answer).toMatchObject({ status: 403, reason: 'ticket_invalid' });
  });

  it('a refused one has not used up its number', async () => {
    const lane = await openSession();
    const refused = await ask({ ...lane, lane: 9, claims: { model: 'other-en' } });
    expect(refused).toMatchObject({ status: 421 });
    expect(await ask({ ...lane, lane: 9 })).toMatchObject({ status: 200 });
  });
});
