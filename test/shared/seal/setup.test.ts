import { describe, expect, it } from 'vitest';
import { createOpener, createSealer } from '../../../shared/seal/records.ts';
import { generateSealKey, setupRecipient, setupSender } from '../../../shared/seal/setup.ts';
import { openStream, sealStream } from '../../../shared/seal/streams.ts';

const key = generateSealKey();

/** Opens a body, sealed for attestation A and ticket T, with changed values at the recipient. */
async function exchange(change: { attestation?: string; ticket?: string; direction?: 'answer'; other?: boolean }) {
  const { publicJwk, privateKey } = await key;
  const sender = await setupSender(publicJwk, 5, 'attestation');
  const recipient = await setupRecipient(
    change.other ? (await generateSealKey()).privateKey : privateKey,
    sender.enc,
    5,
    change.attestation ?? 'attestation',
  );
  if (!recipient.ok) throw new Error('set-up refused');
  const sealer = await createSealer((await sender.keysFor('ticket')).request, 5);
  const keys = await recipient.value.keysFor(change.ticket ?? 'ticket');
  const opener = await createOpener(keys[change.direction ?? 'request'], 5);
  const stream = sealStream(new TextEncoder().encode('head'), new Blob(['body']).stream(), sealer);
  const texts: string[] = [];
  for await (const opened of openStream(stream, opener))
    texts.push(opened.ok ? new TextDecoder().decode(opened.value.plaintext) : opened.refusal.reason);
  return texts;
}

describe('C5 A21 set-up', () => {
  it('gives both sides the same keys', async () => {
    expect(await exchange({})).toEqual(['head', 'body']);
  });

  it.each([
    ['another attestation', { attestation: 'attestation2' }],
    ['another ticket', { ticket: 'ticket2' }],
    ['the other direction', { direction: 'answer' as const }],
    ['another private key', { other: true }],
  ])('opens nothing with %s', async (_, change) => {
    expect(await exchange(change)).toEqual(['seal_broken']);
  });

  it.each([
    ['off the curve', (enc: Uint8Array) => enc.fill(1, 1)],
    ['compressed', (enc: Uint8Array) => Uint8Array.of(2, ...enc.subarray(1, 33))],
    ['cut short', (enc: Uint8Array) => enc.subarray(0, 64)],
    ['empty', () => new Uint8Array()],
  ])('refuses an encapsulated key that is %s', async (_, change) => {
    const { publicJwk, privateKey } = await key;
    const { enc } = await setupSender(publicJwk, 5, 'attestation');
    const result = await setupRecipient(privateKey, change(enc), 5, 'attestation');
    expect(result).toMatchObject({ ok: false, refusal: { reason: 'seal_broken' } });
  });

  it('gives distinct keys by direction, ticket and set-up, reproducibly', async () => {
    const { publicJwk, privateKey } = await key;
    const [one, two] = await Promise.all([1, 2].map(() => setupSender(publicJwk, 5, 'attestation')));
    if (!one || !two) throw new Error('no set-up');
    const all = [await one.keysFor('a'), await one.keysFor('b'), await two.keysFor('a')].flatMap(Object.values);
    expect(new Set(all.map((bytes: Uint8Array) => Buffer.from(bytes).toString('hex'))).size).toBe(6);
    expect(await one.keysFor('a')).toEqual(await one.keysFor('a'));
    expect([privateKey.privateKey.extractable, 'd' in publicJwk]).toEqual([false, false]);
  });
});
