// Keys and folders of `auricle model sign`, as people have them.
import { execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { wrong } from '../../../infra/cli/answer.ts';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { commandLine } from '../../../infra/cli/command-line.ts';
import { keyFileOf, readPublicKey, readSigningKey } from '../../../infra/cli/models/key.ts';
import { model } from '../../../infra/cli/models/model.ts';
import { algorithmOf, verifyBy } from '../../../shared/registry/signature-key.ts';

const PEM = { format: 'pem', type: 'pkcs8' } as const;

let folder: string;
const at = (name: string) => path.join(folder, name);
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-sign-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const run = async (...words: string[]) => {
  const given = readArguments(['model', ...words]);
  if ('problem' in given) return wrong(given.problem);
  return model(given, {});
};

describe('A15: keys', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

  it.each(['pkcs8', 'sec1'] as const)('P-256 as %s', async (type) => {
    writeFileSync(at('private'), privateKey.export({ format: 'pem', type }));
    writeFileSync(at('public'), publicKey.export({ format: 'pem', type: 'spki' }));
    const key = await readSigningKey(at('private'));
    expect(key && Buffer.from(key.publicKey).toString('base64')).toBe(readPublicKey(at('public')));
    expect(readPublicKey(at('private'))).toBe(readPublicKey(at('public')));
  });

  const openssl = /^OpenSSL 3/.test(spawnSync('openssl', ['version'], { encoding: 'utf8' }).stdout ?? '');
  it.skipIf(!openssl)('SM2 as OpenSSL writes it, both ways (OpenSSL 3 only)', async () => {
    execFileSync('openssl', ['ecparam', '-genkey', '-name', 'SM2', '-out', at('sec1')]);
    execFileSync('openssl', ['pkey', '-in', at('sec1'), '-out', at('pkcs8')]);
    execFileSync('openssl', ['pkey', '-in', at('sec1'), '-pubout', '-out', at('sm2.pub')]);
    for (const name of ['sec1', 'pkcs8']) {
      const key = await readSigningKey(at(name));
      if (!key) throw new Error(`${name} is not read`);
      expect(Buffer.from(key.publicKey).toString('base64')).toBe(readPublicKey(at('sm2.pub')));
      const message = new TextEncoder().encode('a revision');
      expect(await verifyBy(key.publicKey, message, await key.sign(message))).toBe(true);
    }
  });

  it('anything else is none', async () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({
      format: 'pem',
      type: 'pkcs8',
    });
    writeFileSync(at('rsa'), rsa);
    writeFileSync(at('nothing'), 'no key');
    expect(await readSigningKey(at('rsa'))).toBeUndefined();
    expect(await readSigningKey(at('nothing'))).toBeUndefined();
    expect(algorithmOf(new Uint8Array(Buffer.from(readPublicKey(at('nothing')), 'base64')))).toBeUndefined();
  });

  it('a name is that of a signer of the local stack, never a path', () => {
    expect(keyFileOf({ key: undefined, as: '../../issuer', state: 's' })).toBe(
      path.join('s/identity/signers/issuer.pem'),
    );
    expect(keyFileOf({ key: 'mine', as: 'author', state: 's' })).toBe('mine');
    expect(keyFileOf({ key: undefined, as: undefined, state: 's' })).toBeUndefined();
  });
});

describe('A15: folders', () => {
  it('a link is refused: what it names is not in the folder', async () => {
    writeFileSync(
      at('private'),
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }),
    );
    const model = mkdtempSync(path.join(folder, 'model-'));
    expect(await run('sign', model, '--key', at('private'))).toMatchObject({ exit: 2 });
    symlinkSync('/etc/hosts', path.join(model, 'hosts'));
    await expect(run('sign', model, '--key', at('private'))).rejects.toThrow('neither a file nor a folder');
  });

  it('names what is wrong on this machine, and not the edge', async () => {
    const model = mkdtempSync(path.join(folder, 'model-'));
    symlinkSync('/etc/hosts', path.join(model, 'hosts'));
    const sign = (key: string) => commandLine(['model', 'sign', model, '--key', key], {});
    expect(await sign(at('private'))).toMatchObject({ exit: 2, err: expect.stringContaining('neither a file') });
    expect(await sign(folder)).toMatchObject({ exit: 2, err: expect.stringContaining('a folder was named') });
    writeFileSync(path.join(model, 'model.sig'), '{');
    const verified = await commandLine(['model', 'verify', model, '--key', at('private')], {});
    expect(verified).toMatchObject({ exit: 2, err: expect.not.stringContaining('edge') });
  });

  it('a file without evidence is named; a rollback to nothing is refused', async () => {
    writeFileSync(at('private'), generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(PEM));
    const revision = `sha256:${'a'.repeat(64)}`;
    const row = { revision, author: 'ann', registered: 1, stage: 'develop-verify', since: 1, aliases: ['stable'] };
    const state = { model: 'm', seq: 1, at: 1, revisions: [row], aliases: [{ alias: 'stable', revision, since: 1 }] };
    const answers = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json(state));
    const promote = (text: string) => {
      writeFileSync(at('bad.json'), text);
      return run('promote', 'm', 'aaaa', '--key', at('private'), '--evidence', at('bad.json'));
    };
    expect(await promote('{no json')).toMatchObject({ exit: 2, text: `${at('bad.json')} is not JSON` });
    const unlike = await promote(JSON.stringify(Array.from({ length: 40 }, () => ({ kind: 'latency', sla: 'fast' }))));
    expect(unlike.exit).toBe(2);
    expect(unlike.text.split('\n').length).toBeLessThan(6);
    writeFileSync(at('bad.json'), '{no json');
    expect(await run('register', 'm', at('bad.json'))).toMatchObject({
      exit: 2,
      text: `${at('bad.json')} is not JSON`,
    });
    expect(await run('rollback', 'm')).toMatchObject({ exit: 1, text: 'the alias "stable" has no earlier revision' });
    answers.mockRestore();
  });

  it.each([['sign'], ['promote', 'm'], ['approve', 'm', 'x'], ['alias', 'm', 'a'], ['rollback'], ['log']])(
    'a malformed argument is refused: %s %s',
    async (...words) => expect(await run(...words)).toMatchObject({ exit: 2 }),
  );
});
