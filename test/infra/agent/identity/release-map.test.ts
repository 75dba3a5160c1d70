// The release map at an agent: believed by its signature, never an older one, and what it takes back answers nothing new.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { CompactSign, exportJWK, generateKeyPair } from 'jose';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { SNAPSHOT_AGE_MS, SNAPSHOT_WAIT_MS } from '../../../../edge/routing/snapshot.ts';
import { openReleaseMap, RELEASE_GRACE_MS } from '../../../../infra/pool/agent/identity/release-map.ts';
import type { LogEvent } from '../../../../infra/pool/agent/telemetry/log.ts';
import { HEARTBEAT_MS } from '../../../../shared/pool/limits.ts';
import { type ModelRelease, RELEASE_TYPE } from '../../../../shared/registry/release.ts';
import { testDescription } from '../start-agent.ts';

type Keys = Awaited<ReturnType<typeof generateKeyPair>>;
let functions: Keys;
let stranger: Keys;
beforeAll(async () => {
  [functions, stranger] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')];
});

let stateDir: string;
let now: number;
let events: LogEvent[];
beforeEach(() => {
  stateDir = mkdtempSync(path.join(os.tmpdir(), 'auricle-release-'));
  now = 1_000_000;
  events = [];
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

const open = async () =>
  openReleaseMap({
    keys: { keys: [{ ...(await exportJWK(functions.publicKey)), alg: 'ES256' }] },
    stateDir,
    now: () => now,
    log: (event) => events.push(event),
  });

const [A, B, C] = ['a', 'b', 'c'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string, string];
const of = (revision: string) => ({ ...testDescription, revision });
const signed = (generation: number, one: ModelRelease, { privateKey } = functions, typ = RELEASE_TYPE) =>
  new CompactSign(new TextEncoder().encode(JSON.stringify({ v: 1, generation, models: { 'test-en': one } })))
    .setProtectedHeader({ alg: 'ES256', typ })
    .sign(privateKey);

it('C7, T1: uses the newest map it received, also after a restart', async () => {
  const map = await open();
  expect([map.generation(), map.part(of(C))]).toEqual([0, 'full']);
  await map.take(await signed(7, { stable: A, before: B, canary: { revision: C, share: 0.05 } }));
  expect([A, B, C].map((one) => map.part(of(one)))).toEqual(['full', 'older', 'canary']);
  await map.take(await signed(6, { stable: C }));
  expect([map.generation(), map.part(of(A))]).toEqual([7, 'full']);
  const again = await open();
  expect([again.generation(), again.part(of(A))]).toEqual([7, 'full']);
  await again.take(await signed(6, { stable: C }));
  expect(again.generation()).toBe(7);
  expect(events).toEqual(['release', 'release-refused', 'release-refused']);
});

it('C7: accepts maps signed by the functions only, from wire and disk', async () => {
  const map = await open();
  for (const one of [
    await signed(1, { stable: A }, stranger),
    await signed(1, { stable: A }, functions, 'JWT'),
    'nothing',
  ]) {
    await map.take(one);
  }
  expect([map.generation(), events]).toEqual([0, Array.from({ length: 3 }, () => 'release-refused')]);
  writeFileSync(path.join(stateDir, 'release.jws'), await signed(9, { stable: A }, stranger));
  expect((await open()).generation()).toBe(0);
});

it('T1: a rollback needs only the map; the old revision stays for a grace period', async () => {
  const map = await open();
  await map.take(await signed(1, { stable: A, before: B, canary: { revision: C, share: 0.05 } }));
  await map.take(await signed(2, { stable: B, before: A }));
  expect([A, B, C].map((one) => map.part(of(one)))).toEqual(['older', 'full', 'canary']);
  now += RELEASE_GRACE_MS;
  expect([A, B, C].map((one) => map.part(of(one)))).toEqual(['older', 'full', undefined]);
  expect(RELEASE_GRACE_MS + HEARTBEAT_MS).toBeLessThan(5_000);
  expect(RELEASE_GRACE_MS).toBeGreaterThan(SNAPSHOT_AGE_MS + SNAPSHOT_WAIT_MS);
});

it('without keys of the functions takes none, and logs nothing', async () => {
  const map = await openReleaseMap({ keys: undefined, stateDir, now: () => now, log: (event) => events.push(event) });
  await map.take(await signed(1, { stable: B }));
  expect([map.generation(), map.part(of(A))]).toEqual([undefined, 'full']);
});
