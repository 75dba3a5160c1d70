import { afterEach, describe, expect, it } from 'vitest';
import { askVault } from '../../../functions/audit/log/ask-vault.ts';
import { openLogKeys, openVaultKey } from '../../../functions/audit/log/log-keys.ts';
import { checkpointName, signedName } from '../../../functions/audit/log/log-names.ts';
import { lookAtLog } from '../../../functions/audit/log/look-at-log.ts';
import { Sequencer } from '../../../functions/audit/log/sequencer.ts';
import { VaultKey } from '../../../functions/audit/log/vault-key.ts';
import { VaultTokens } from '../../../functions/audit/log/vault-token.ts';
import { readSettings } from '../../../functions/settings.ts';
import { openP256Verifier, toDer } from '../../../shared/audit/ecdsa.ts';
import { openJudge } from '../../../shared/audit/judge.ts';
import { limits } from '../../../shared/limits.ts';
import { ENDPOINT, type Fault, HEADER, startVault, type VaultDouble } from './key-vault.ts';
import { MemoryStore } from './stored-log.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const AUDIT_KEY = Buffer.alloc(32, 1).toString('base64');
const identity = { endpoint: ENDPOINT, header: HEADER };

let vault: VaultDouble;
afterEach(() => vault?.stop());

async function open(host?: string) {
  vault = await startVault(host, limits.auditVaultMs.value);
  return new VaultKey(vault, identity, vault.parts);
}

describe('C9 T7 a key in Azure Key Vault', () => {
  it.each(['marks.vault.azure.net', 'marks.managedhsm.azure.net', 'marks.vault.azure.cn'])(
    'of %s signs what readers of signed notes verify, with one token and one look at the key',
    async (host) => {
      const key = await open(host);
      await key.begin();
      const verifier = await openP256Verifier('x', key.publicKey);
      for (const text of ['one', 'two']) {
        const numbers = await key.sign(bytes(text));
        expect(await verifier.verify(bytes(text), toDer(numbers))).toBe(true);
      }
      expect(vault.asked).toEqual(['token', 'GET', 'sign', 'sign']);
    },
  );

  it('a token is used until shortly before its end, and asked for once by many', async () => {
    const key = await open();
    await Promise.all([key.sign(bytes('a')), key.sign(bytes('b'))]);
    expect(vault.asked.filter((one) => one === 'token')).toHaveLength(1);
    vault.now += 3_600_000 - limits.auditTokenEarlyMs.value - 1_000;
    await key.sign(bytes('c'));
    expect(vault.asked.filter((one) => one === 'token')).toHaveLength(1);
    vault.now += 1_000;
    await key.sign(bytes('d'));
    expect(vault.asked.filter((one) => one === 'token')).toHaveLength(2);
  });

  it('a token that is not accepted is asked for anew, once', async () => {
    const key = await open();
    vault.valid = (token) => token === 'token-2';
    await key.sign(bytes('a'));
    expect(vault.asked).toEqual(['token', 'GET', 'token', 'GET', 'sign']);
    vault.valid = () => false;
    await expect(key.sign(bytes('b'))).rejects.toThrow('answers 401');
    expect(vault.asked.slice(5)).toEqual(['sign', 'token', 'sign']);
  });

  it.each<[string, Fault[], number[]]>([
    ['too many questions, which says for how long', [{ status: 429, headers: { 'retry-after': '1' } }], [1_000]],
    ['too many questions', [{ status: 429 }, { status: 429 }], [100, 200]],
    ['a fault of the vault', [{ status: 503 }, { status: 500 }], [100, 200]],
    ['a line that breaks', ['cut'], [100]],
  ])('is asked again after %s', async (_what, faults, pauses) => {
    const key = await open();
    await key.begin();
    vault.faults.push(...faults);
    await key.sign(bytes('a'));
    expect(vault.pauses).toEqual(pauses);
  });

  it.each<[string, Fault[], string, number]>([
    ['may not', [{ status: 403 }], 'answers 403', 1],
    ['is gone', [{ status: 404 }], 'answers 404', 1],
    [
      'is asked too often for longer than there is time',
      [{ status: 429, headers: { 'retry-after': '60' } }],
      'answers 429',
      1,
    ],
    ['fails again and again', [{ status: 500 }, { status: 500 }, { status: 500 }], 'answers 500', 3],
    ['signs something else', ['forged'], 'not of its key', 1],
  ])('that %s does not sign, and is left alone for a while', async (_what, faults, why, questions) => {
    const key = await open();
    await key.begin();
    const before = vault.asked.length;
    vault.faults.push(...faults);
    await expect(key.sign(bytes('a'))).rejects.toThrow(why);
    await expect(key.sign(bytes('a'))).rejects.toThrow('a moment ago');
    expect(vault.asked.length - before).toBe(questions);
    vault.now += Math.max(limits.auditVaultRestMs.value, 60_000);
    await expect(key.sign(bytes('a'))).resolves.toHaveLength(64);
  });

  it('that failed is asked again when somebody sets the clock back', async () => {
    const key = await open();
    await key.begin();
    vault.faults.push({ status: 403 });
    await expect(key.sign(bytes('a'))).rejects.toThrow('answers 403');
    vault.now -= 3_600_000;
    await expect(key.sign(bytes('a'))).resolves.toHaveLength(64);
  });

  it('a token that many wait for is asked for on behalf of all: one that is too late takes nobody with it', async () => {
    const after = () => ({ rings: Promise.resolve(), cancel() {} });
    let give = (_answer: Response) => {};
    let asked = 0;
    const send = (_url: string, { signal }: { readonly signal: AbortSignal }) => {
      asked += 1;
      return new Promise<Response>((settle, fail) => {
        give = settle;
        signal.addEventListener('abort', () => fail(new Error('aborted')));
      });
    };
    const tokens = new VaultTokens(identity, 'https://vault.azure.net', send, () => 0);
    const url = 'https://marks.vault.azure.net/keys/audit-log/1';
    const answers = async () => Response.json({ kept: true });
    const ask = (signal: AbortSignal) =>
      askVault({ send: answers, now: () => 0, after }, tokens, url, undefined, 1_000, signal);
    const [first, second] = [new AbortController(), new AbortController()];
    const both = [ask(first.signal), ask(second.signal)];
    first.abort();
    give(Response.json({ access_token: 'token', expires_on: '2000000000' }));
    expect(await Promise.all(both)).toEqual([{ kept: true }, { kept: true }]);
    expect(asked).toBe(1);
  });

  it('that does not answer holds nobody up longer than it may', async () => {
    const key = await open();
    await key.begin();
    vault.faults.push('hang');
    const signing = key.sign(bytes('a'));
    const failed = expect(signing).rejects.toThrow('in time');
    while (!vault.asked.includes('sign')) await new Promise(setImmediate);
    vault.ringLate();
    await failed;
  });

  it('that is another one than settings say is found at the start, or before the first signature', async () => {
    const key = await open();
    const other = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
    const publicKey = new Uint8Array(await crypto.subtle.exportKey('spki', other.publicKey));
    const wrong = () => new VaultKey({ id: vault.id, publicKey }, identity, vault.parts);
    await expect(wrong().begin()).rejects.toThrow('another key');
    const late = wrong();
    vault.faults.push({ status: 403 });
    await late.begin();
    vault.now += limits.auditVaultRestMs.value;
    await expect(late.sign(bytes('a'))).rejects.toThrow('another key');
    await expect(key.begin()).resolves.toBeUndefined();
  });
});

describe('C9 settings of a key in a vault', () => {
  const needed = { STORAGE_CONNECTION: 'x', SQS_REGION: 'eu-central-1', MODE: 'development' };

  it('names one version of one key of a vault, and nothing else gets a token', async () => {
    await open();
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
    const settings = { ...read(vault.id), IDENTITY_ENDPOINT: ENDPOINT, IDENTITY_HEADER: HEADER };
    expect((await openVaultKey(settings, vault.parts))?.publicKey).toEqual(vault.publicKey);
    await expect(openVaultKey(read(vault.id), vault.parts)).rejects.toThrow('IDENTITY_ENDPOINT');
    await expect(openVaultKey({ ...settings, AUDIT_P256_KEY: 'x' }, vault.parts)).rejects.toThrow('twice');
  });
});

describe('C9 a log that a vault signs', () => {
  it('goes on without its signature, says so, and has it again with the next entry; what is signed is not signed again', async () => {
    const key = await open();
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
      time += limits.auditTickMs.value;
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
    expect((await lookAtLog(desk, 'eu')).log?.unsigned).toBeUndefined();

    vault.faults.push({ status: 403 });
    expect([await grow(), await kinds()]).toEqual(['committed', ['ed25519']]);
    expect(told).toEqual(['audit.example/eu/2026: Error: the vault answers 403']);
    expect((await lookAtLog(desk, 'eu')).log?.unsigned).toEqual(['p256']);
    vault.now += limits.auditVaultRestMs.value;
    expect([await grow(), await kinds()]).toEqual(['committed', ['ed25519', 'p256']]);

    // The checkpoint is signed and kept; whoever published it broke off before anybody could see it.
    const size = (await lookAtLog(desk, 'eu')).log?.size ?? 0;
    const questions = vault.asked.length;
    const shown = store.area('state').get(checkpointName('eu', 2026));
    store.area('state').delete(checkpointName('eu', 2026));
    await sequencer().round();
    expect(store.area('state').get(checkpointName('eu', 2026))?.bytes).toEqual(shown?.bytes);
    expect(store.area('log').get(signedName('eu', 2026, size))?.bytes).toEqual(shown?.bytes);
    expect(vault.asked.length).toBe(questions);
  });
});
