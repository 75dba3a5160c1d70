import { beforeEach, describe, expect, it } from 'vitest';
import { LOG_TICK_MS } from '../../../functions/audit/limits.ts';
import { openLogKeys, openVaultKey } from '../../../functions/audit/log/log-keys.ts';
import { checkpointName, signedName } from '../../../functions/audit/log/log-names.ts';
import { VAULT_REST_MS, VaultKey } from '../../../functions/audit/log/vault-key.ts';
import { readLogHealth } from '../../../functions/audit/read/read-log-health.ts';
import { Sequencer } from '../../../functions/audit/sequencer/sequencer.ts';
import { readSettings } from '../../../functions/settings.ts';
import { openP256Verifier, toDer } from '../../../shared/audit/ecdsa.ts';
import { openJudge } from '../../../shared/audit/judge.ts';
import { type FakeVault, type Fault, openVault } from '../../fake/key-vault.ts';
import { MemoryStore } from '../../fake/log-store.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const AUDIT_KEY = Buffer.alloc(32, 1).toString('base64');

let vault: FakeVault;
let key: VaultKey;
const open = (host?: string) => {
  vault = openVault(host);
  key = new VaultKey(vault, vault.parts);
};
beforeEach(() => open());

describe('C9 T7 a key in Azure Key Vault', () => {
  it.each(['marks.vault.azure.net', 'marks.managedhsm.azure.net', 'marks.vault.azure.cn'])(
    'in %s signs for readers of signed notes, after one lookup of the key',
    async (host) => {
      open(host);
      await key.begin();
      const verifier = await openP256Verifier('x', key.publicKey);
      for (const text of ['one', 'two']) {
        const numbers = await key.sign(bytes(text));
        expect(await verifier.verify(bytes(text), toDer(numbers))).toBe(true);
      }
      const resource = `https://${host.split('.').slice(1).join('.')}/.default`;
      expect(vault.requests.filter((one) => !one.startsWith('token'))).toEqual(['GET', 'sign', 'sign']);
      expect(vault.requests[0]).toBe(`token ${resource}`);
    },
  );

  it.each<[string, Fault[]]>([
    ['too many requests', [{ status: 429, headers: { 'retry-after-ms': '1' } }]],
    ['a fault of the vault', [{ status: 503 }, { status: 500 }]],
    ['a connection that is cut', ['cut']],
  ])('retries after %s', async (_what, faults) => {
    await key.begin();
    vault.faults.push(...faults);
    await expect(key.sign(bytes('a'))).resolves.toHaveLength(64);
  });

  it.each<[string, Fault[], string, number]>([
    ['refuses', [{ status: 403 }], '', 1],
    ['has no such key', [{ status: 404 }], '', 1],
    ['fails three times', [{ status: 500 }, { status: 500 }, { status: 500 }], '', 3],
    ['signs with another key', ['forged'], 'not of its key', 1],
  ])('that %s does not sign, and is left alone for a while', async (_what, faults, why, questions) => {
    await key.begin();
    await key.sign(bytes('a'));
    const before = vault.requests.length;
    vault.faults.push(...faults);
    await expect(key.sign(bytes('a'))).rejects.toThrow(why);
    await expect(key.sign(bytes('a'))).rejects.toThrow('a moment ago');
    expect(vault.requests.length - before).toBe(questions);
    vault.now += VAULT_REST_MS;
    await expect(key.sign(bytes('a'))).resolves.toHaveLength(64);
  });

  it('after a failure is called again once the clock went back', async () => {
    await key.begin();
    vault.faults.push({ status: 403 });
    await expect(key.sign(bytes('a'))).rejects.toThrow();
    vault.now -= 3_600_000;
    await expect(key.sign(bytes('a'))).resolves.toHaveLength(64);
  });

  it('that does not answer delays a signature no longer than its deadline', async () => {
    await key.begin();
    await key.sign(bytes('a'));
    const before = vault.requests.length;
    vault.faults.push('hang');
    const failed = expect(key.sign(bytes('b'))).rejects.toThrow('in time');
    while (vault.requests.length === before) await new Promise(setImmediate);
    vault.fireDeadline();
    await failed;
  });

  it('that differs from the settings is found at start or first signature', async () => {
    const { publicKey } = openVault();
    const wrong = () => new VaultKey({ id: vault.id, publicKey }, vault.parts);
    await expect(wrong().begin()).rejects.toThrow('another key');
    const late = wrong();
    vault.faults.push({ status: 403 });
    await late.begin();
    vault.now += VAULT_REST_MS;
    await expect(late.sign(bytes('a'))).rejects.toThrow('another key');
    await expect(key.begin()).resolves.toBeUndefined();
  });
});

describe('C9 settings of a key in a vault', () => {
  const needed = { STORAGE_CONNECTION: 'x', SQS_REGION: 'eu-central-1', MODE: 'development' };

  it('names one version of one key of a vault; other addresses get no token', async () => {
    const publicKey = Buffer.from(vault.publicKey).toString('base64');
    const read = (id: string) => readSettings({ ...needed, AUDIT_VAULT_KEY: JSON.stringify({ id, publicKey }) });
    expect(read(vault.id).AUDIT_VAULT_KEY?.id).toBe(vault.id);
    for (const id of [
      vault.id.replace('https', 'http'),
      vault.id.replace('vault.azure.net', 'vault.azure.net.evil.example'),
      vault.id.replace('marks', 'evil.example/marks'),
      vault.id.slice(0, -33),
      `${vault.id}/sign`,
    ]) {
      expect(() => read(id), id).toThrow('AUDIT_VAULT_KEY');
    }
    const settings = read(vault.id);
    expect((await openVaultKey(settings, vault.parts))?.publicKey).toEqual(vault.publicKey);
    await expect(openVaultKey({ ...settings, AUDIT_P256_KEY: 'x' }, vault.parts)).rejects.toThrow('twice');
  });
});

describe('C9 a log that a vault signs', () => {
  it('the log continues without its signature, reports it, and has it again later', async () => {
    const told: string[] = [];
    const keys = await openLogKeys({ AUDIT_KEY }, key, (origin, error) => told.push(`${origin}: ${String(error)}`));
    if (!keys) throw new Error('no keys');
    const store = new MemoryStore();
    let time = Date.UTC(2026, 5, 1);
    const now = () => time;
    const newId = () => crypto.randomUUID();
    const sequencer = () => new Sequencer({ ...keys, store, now, zone: 'eu', base: 'audit.example', newId });
    const writer = sequencer();
    const grow = async () => {
      time += LOG_TICK_MS;
      return (await writer.round()).kind;
    };
    const judge = await openJudge(keys.policy('audit.example/eu/2026'));
    const kinds = async () => {
      const published = store.area('state').get(checkpointName('eu', 2026))?.bytes ?? new Uint8Array();
      return (await judge(published))?.logKeys.map(({ type }) => type);
    };
    const desk = { store, policy: keys.policy, now, settings: {} };
    await grow();
    expect([await grow(), await kinds()]).toEqual(['committed', ['ed25519', 'p256']]);
    expect((await readLogHealth(desk, 'eu')).log?.unsigned).toBeUndefined();

    vault.faults.push({ status: 403 });
    expect([await grow(), await kinds()]).toEqual(['committed', ['ed25519']]);
    expect(told).toEqual([expect.stringContaining('audit.example/eu/2026: RestError')]);
    expect((await readLogHealth(desk, 'eu')).log?.unsigned).toEqual(['p256']);
    vault.now += VAULT_REST_MS;
    expect([await grow(), await kinds()]).toEqual(['committed', ['ed25519', 'p256']]);

    // The checkpoint is signed and stored; its publisher stopped before publication.
    const size = (await readLogHealth(desk, 'eu')).log?.size ?? 0;
    const questions = vault.requests.length;
    const shown = store.area('state').get(checkpointName('eu', 2026));
    store.area('state').delete(checkpointName('eu', 2026));
    await sequencer().round();
    expect(store.area('state').get(checkpointName('eu', 2026))?.bytes).toEqual(shown?.bytes);
    expect(store.area('log').get(signedName('eu', 2026, size))?.bytes).toEqual(shown?.bytes);
    expect(vault.requests.length).toBe(questions);
  });
});
