import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { createReplayCache, createTicketReader } from '../../../../infra/pool/agent/request/ticket.ts';
import { CLOCK_SKEW_S } from '../../../../shared/clock-offset.ts';
import { TICKET_S } from '../../../../shared/seal/limits.ts';
import { TOKEN_CHARACTERS } from '../../../../shared/tenant/limits.ts';

const now = 1_800_000_000_000;
const seconds = now / 1_000;
const claims = {
  v: 1,
  jti: 'request-0001',
  aud: 'agent-1',
  tenant: 'dev',
  class: 'default',
  model: 'test-en',
  enc: 'e'.repeat(43),
  att: 'a'.repeat(43),
  suite: 5,
  iat: seconds,
  exp: seconds + 60,
  deadlineMs: 1_000,
};

let key: CryptoKey;
let read: ReturnType<typeof createTicketReader>;
beforeAll(async () => {
  const pair = await generateKeyPair('ES256');
  key = pair.privateKey;
  read = createTicketReader('agent-1', { keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'k', alg: 'ES256' }] });
});

const sign = (changes: Record<string, unknown> = {}) =>
  new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg: 'ES256', kid: 'k' }).sign(key);
const reason = async (token: string | Promise<string>, at = now) => {
  const result = await read(await token, at);
  return result.ok ? 'ok' : result.refusal.reason;
};

describe('C4: tickets', () => {
  it('is read when all is right', async () => {
    expect(await read(await sign(), now)).toEqual({ ok: true, value: claims });
  });

  it.each<[string, Record<string, unknown>]>([
    ['another audience', { aud: 'agent-2' }],
    ['no id', { jti: undefined }],
    ['an id too short to be unique', { jti: 'x' }],
    ['no expiry', { exp: undefined }],
    ['a life longer than a minute', { exp: seconds + TICKET_S + 1 }],
    ['another version', { v: 2 }],
    ['an unknown class', { class: 'urgent' }],
    ['an unknown suite', { suite: 1 }],
    ['no tenant', { tenant: undefined }],
    ['a budget of nothing', { deadlineMs: 0 }],
    ['a digest that is none', { enc: 'short' }],
  ])('is refused with %s', async (_, changes) => {
    expect(await reason(sign(changes))).toBe('ticket_invalid');
  });

  it('is refused when it has expired, beyond the skew of clocks', async () => {
    const token = await sign();
    expect(await reason(token, now + 80_000)).toBe('ok');
    expect(await reason(token, now + 91_000)).toBe('ticket_invalid');
  });

  it('is refused when it was written in the future, beyond the skew of clocks', async () => {
    const at = (ahead: number) => sign({ iat: seconds + ahead, exp: seconds + ahead + TICKET_S });
    expect(await reason(at(CLOCK_SKEW_S))).toBe('ok');
    expect(await reason(at(CLOCK_SKEW_S + 1))).toBe('ticket_invalid');
  });

  it('is refused unsigned, changed, or signed by a shared secret', async () => {
    const [, payload] = (await sign()).split('.');
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`;
    expect(await reason(none)).toBe('ticket_invalid');
    const shared = new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'k' }).sign(new Uint8Array(32));
    expect(await reason(shared)).toBe('ticket_invalid');
    expect(await reason('not a token')).toBe('ticket_invalid');
    expect(await reason('x'.repeat(TOKEN_CHARACTERS + 1))).toBe('ticket_invalid');
  });
});

describe('replay cache', () => {
  it('knows an id until its ticket cannot be used any more', () => {
    const cache = createReplayCache();
    const ticket = { jti: 'a', exp: seconds + 60 };
    expect(cache.admit(ticket, now).ok).toBe(true);
    expect(cache.admit(ticket, now + 60_000)).toMatchObject({ refusal: { reason: 'ticket_replayed' } });
    expect(cache.admit(ticket, now + 89_000)).toMatchObject({ refusal: { reason: 'ticket_replayed' } });
    expect(cache.admit({ jti: 'b', exp: seconds + 200 }, now + 91_000).ok).toBe(true);
    expect(cache.size()).toBe(1);
  });

  it('refuses new ids rather than forgetting a live one', () => {
    const cache = createReplayCache(2);
    const admit = (jti: string, at = now) => cache.admit({ jti, exp: seconds + 60 }, at);
    expect([admit('a').ok, admit('b').ok]).toEqual([true, true]);
    expect(admit('c')).toMatchObject({ refusal: { reason: 'pool_busy' } });
    expect(admit('a')).toMatchObject({ refusal: { reason: 'ticket_replayed' } });
    expect(admit('c', now + 91_000).ok).toBe(true);
  });
});
