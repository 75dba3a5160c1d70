// A log whose key gives way to another one: with a year, and in the middle of one.
import { describe, expect, it } from 'vitest';
import { openLogKeys } from '../../../../functions/audit/log/log-keys.ts';
import { readLogHealth } from '../../../../functions/audit/read/read-log-health.ts';
import { openP256Key } from '../../../../shared/audit/ecdsa.ts';
import type { KeyYears } from '../../../../shared/audit/key-years.ts';
import { openSigningKey } from '../../../../shared/audit/note.ts';
import { formatVerifierKey } from '../../../../shared/audit/note-key.ts';
import { verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { toBase64 } from '../../../../shared/base64.ts';
import { ExportedLog, ORIGIN, readerOf, ZONE } from './exported-log.ts';

const [oldSeed, newSeed] = [new Uint8Array(32).fill(21), new Uint8Array(32).fill(22)];
const [oldKey, newKey] = [await openSigningKey(oldSeed), await openSigningKey(newSeed)];
const [oldText, newText] = [toBase64(oldKey.publicKey), toBase64(newKey.publicKey)];
const [AUDIT_KEY, NEW_KEY] = [toBase64(oldSeed), toBase64(newSeed)];
const WITH_YEAR: KeyYears = [
  { key: oldText, until: 2026 },
  { key: newText, from: 2027 },
];
const WITHIN: KeyYears = [
  { key: oldText, until: 2026 },
  { key: newText, from: 2026 },
];
const NEXT = 'audit.example/eu/2027';

const keysOf = async (settings: Parameters<typeof openLogKeys>[0]) => {
  const keys = await openLogKeys(settings);
  if (!keys) throw new Error('no keys');
  return keys;
};
const namedIn = (bytes: Uint8Array | undefined, text: string) =>
  new TextDecoder().decode(bytes).includes(`log ${text}`);
const policyOf = async (settings: Parameters<typeof openLogKeys>[0], origin: string) =>
  (await keysOf(settings)).policy(origin).logs.map(({ key }) => toBase64(key.publicKey));

const verdictOf = async (log: ExportedLog, year?: number, policy?: Uint8Array) => {
  const files = await log.export('ann', { formats: [], query: year === undefined ? {} : { year } });
  const report = await verifyBundle(readerOf(files), { now: log.now, ...(policy && { policy }) });
  return { files, verdict: report.verdict, texts: report.findings.map(({ text }) => text) };
};

/** ann: 3 entries in 2026, signed with the old key, and 2 in 2027. */
async function overTheYear(): Promise<ExportedLog> {
  const log = new ExportedLog();
  log.logKeys = await keysOf({ AUDIT_KEY, AUDIT_NEXT_KEY: NEW_KEY, AUDIT_KEY_YEARS: WITH_YEAR });
  await log.write('ann', 3);
  log.now = Date.UTC(2027, 0, 1, 0, 0, 1);
  await log.commit();
  await log.write('ann', 2);
  return log;
}

describe('C9 C12 the key of the logs gives way to another', () => {
  it('with the year: one key per log; exports of both years verify', async () => {
    const log = await overTheYear();
    const both = [await verdictOf(log, 2026), await verdictOf(log)];
    log.logKeys = await keysOf({ AUDIT_KEY: NEW_KEY, AUDIT_KEY_YEARS: WITH_YEAR });
    const alone = [await verdictOf(log, 2026), await verdictOf(log)];
    for (const { verdict } of [...both, ...alone]) expect(verdict).toBe('unwitnessed');
    // The policy has only the key of this year's log; the other log has the proof of its end.
    const [old, current] = alone.map(({ files }) => files.get('policy.txt'));
    expect([namedIn(old, `${ORIGIN}+`), namedIn(old, `${NEXT}+`), namedIn(current, `${ORIGIN}+`)]).toEqual([
      ...[true, true, false],
    ]);
    const health = await readLogHealth({ ...log.desk, signers: log.logKeys.signers } as never, ZONE);
    expect(health.log).toMatchObject({ origin: NEXT });
    expect(health.log).not.toHaveProperty('unsigned');
  });

  it('with the year: a year’s key cannot sign for the other year', async () => {
    const log = await overTheYear();
    log.logKeys = await keysOf({ AUDIT_KEY: NEW_KEY, AUDIT_KEY_YEARS: WITH_YEAR });
    const policy = (...keys: readonly (readonly [string, typeof oldKey])[]) =>
      new TextEncoder().encode(
        `${keys.map(([name, { publicKey }]) => `log ${formatVerifierKey(name, publicKey)}\n`).join('')}quorum none\n`,
      );
    expect((await verdictOf(log, 2026, policy([ORIGIN, oldKey], [NEXT, newKey]))).verdict).toBe('unwitnessed');
    expect(await verdictOf(log, 2026, policy([ORIGIN, oldKey]))).toMatchObject({
      verdict: 'invalid',
      texts: ['manifest.note is not signed by audit.example/eu/2026/export'],
    });
    expect((await verdictOf(log, 2026, policy([ORIGIN, newKey]))).verdict).toBe('invalid');
    expect((await verdictOf(log, undefined, policy([NEXT, oldKey]))).verdict).toBe('invalid');
    // A later log of another region proves nothing here.
    expect((await verdictOf(log, 2026, policy([ORIGIN, oldKey], ['audit.example/us/2027', newKey]))).verdict).toBe(
      'invalid',
    );
  });

  it('within a year: both keys in its policy, the new one in the next', async () => {
    const log = new ExportedLog();
    log.logKeys = await keysOf({ AUDIT_KEY });
    await log.write('ann', 3);
    log.logKeys = await keysOf({ AUDIT_KEY: NEW_KEY, AUDIT_KEY_YEARS: WITHIN });
    // Before anything is signed anew, and after.
    expect((await verdictOf(log)).verdict).toBe('unwitnessed');
    await log.write('ann', 2);
    expect((await verdictOf(log)).verdict).toBe('unwitnessed');
    log.now = Date.UTC(2027, 5, 1);
    await log.commit();
    await log.write('ann', 1);
    expect((await verdictOf(log, 2026)).verdict).toBe('unwitnessed');
    expect((await verdictOf(log)).verdict).toBe('unwitnessed');
    expect(await policyOf({ AUDIT_KEY: NEW_KEY, AUDIT_KEY_YEARS: WITHIN }, ORIGIN)).toEqual([newText, oldText]);
    expect(await policyOf({ AUDIT_KEY: NEW_KEY, AUDIT_KEY_YEARS: WITHIN }, NEXT)).toEqual([newText]);
  });

  it('a hardware key neither signs nor is in policies of earlier years', async () => {
    const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
    const hardware = await openP256Key(JSON.stringify(await crypto.subtle.exportKey('jwk', pair.privateKey)));
    if (!hardware) throw new Error('no key');
    const text = toBase64(hardware.publicKey);
    const settings = { AUDIT_KEY, AUDIT_KEY_YEARS: [{ key: text, from: 2027 }] };
    const keys = await openLogKeys(settings, hardware);
    expect([ORIGIN, NEXT].map((origin) => keys?.policy(origin).logs.map(({ key }) => key.type))).toEqual([
      ['ed25519'],
      ['ed25519', 'p256'],
    ]);
    expect([ORIGIN, NEXT].map((origin) => keys?.signers(origin).length)).toEqual([1, 2]);
  });

  it('a year without a key signs nothing; two keys of one year are refused', async () => {
    const keys = await keysOf({ AUDIT_KEY: NEW_KEY, AUDIT_KEY_YEARS: WITH_YEAR });
    expect(() => keys.signers(ORIGIN)).toThrow('AUDIT_KEY_YEARS');
    expect(keys.signer(`${ORIGIN}/ack`)).toBeUndefined();
    expect(keys.signer(`${NEXT}/ack`)).toBeDefined();
    for (const years of [undefined, WITHIN, [{ key: oldText, until: 2026 }], [{ key: newText, from: 2027 }]])
      await expect(
        openLogKeys({ AUDIT_KEY, AUDIT_NEXT_KEY: NEW_KEY, ...(years && { AUDIT_KEY_YEARS: years }) }),
      ).rejects.toThrow('AUDIT_NEXT_KEY');
  });
});
