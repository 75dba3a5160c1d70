// auricle model sign | verify
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { publicText } from '../../../shared/refusal.ts';
import { digestOfFiles } from '../../../shared/registry/revision.ts';
import { makeBundle, openBundle } from '../../../shared/registry/signature-bundle.ts';
import { signPayload } from '../../../shared/registry/signature-envelope.ts';
import { algorithmOf, digestOf, signerKey } from '../../../shared/registry/signature-key.ts';
import { writeManifest } from '../../../shared/registry/signature-manifest.ts';
import { sla } from '../../../shared/registry/sla.ts';
import { verifyFiles } from '../../../shared/registry/verify-files.ts';
import { type Answer, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { digestFolder, openFolder, signatureOf } from './files.ts';
import { keyFileOf, NO_KEY, noKeyIn, readPublicKey, readSigningKey } from './key.ts';

const isFolder = (folder: string): boolean => statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;

/** Reports a plain subfolder name. */
const isPart = (part: string): boolean => part === path.basename(part) && !part.startsWith('.');

/** Writes the signature of a folder into it, replacing an existing one. */
export async function signModel(given: Arguments): Promise<Answer> {
  const [folder = '', ...parts] = given.operands.slice(1);
  const file = keyFileOf(given);
  if (!parts.every(isPart)) return wrong('each PART is the name of a folder in FOLDER');
  if (file === undefined) return wrong(NO_KEY);
  if (!isFolder(folder)) return wrong(`no such folder: ${folder}`);
  const key = await readSigningKey(file);
  const algorithm = key && algorithmOf(key.publicKey);
  if (!key || !algorithm) return wrong(noKeyIn(file));
  const digests = await digestFolder(folder, parts);
  if (digests.length === 0) return wrong(`there are no files in ${folder}`);
  const revision = digestOfFiles(digests.map(({ name, sha256 }) => ({ name, digest: sha256 })));
  const hash = digestOf[algorithm];
  const listed = digests.map((one) => ({ name: one.name, digest: one[hash] }));
  const promised = given.sla === undefined ? undefined : sla.safeParse(readNumbers(given.sla));
  if (promised?.success === false)
    return wrong(`--sla ${given.sla}: latencyMs=N, memoryBytes=N, wordErrors=N, with commas`);
  const name = parts[0] ?? path.basename(path.resolve(folder));
  const payload = writeManifest({ name, hash, files: listed, revision, sla: promised?.data });
  const signature = signatureOf(folder, parts, hash);
  writeFileSync(signature, JSON.stringify(makeBundle(await signPayload(payload, key))));
  return { exit: 0, text: `${signature}\n${revision}`, value: { signature, revision, files: digests.length } };
}

/** Parses `a=1,b=2`; invalid numbers become NaN. */
const readNumbers = (text: string): Record<string, number> =>
  Object.fromEntries(text.split(',').map((pair) => [pair.split('=')[0], Number(pair.split('=')[1] || Number.NaN)]));

export async function verifyModel(given: Arguments): Promise<Answer> {
  const [folder = '', ...parts] = given.operands.slice(1);
  const file = keyFileOf(given);
  if (!parts.every(isPart)) return wrong('each PART is the name of a folder in FOLDER');
  if (file === undefined) return wrong(NO_KEY);
  if (!isFolder(folder)) return wrong(`no such folder: ${folder}`);
  const signer = signerKey.safeParse({ name: 'signer', key: readPublicKey(file) });
  if (!signer.success) return wrong(`${file} holds no public key of P-256 or SM2`);
  const algorithm = algorithmOf(new Uint8Array(Buffer.from(signer.data.key, 'base64'))) ?? 'ecdsa-p256';
  const bundle: unknown = JSON.parse(readFileSync(signatureOf(folder, parts, digestOf[algorithm]), 'utf8'));
  const opened = await openBundle(bundle, [signer.data]);
  const found = opened.ok ? await verifyFiles(opened.value.manifest, openFolder(folder, parts)) : opened;
  if (!found.ok) {
    const text = publicText(found.refusal);
    return { exit: 1, text, value: { error: { code: found.refusal.reason, message: text } } };
  }
  const { revision, bytes } = found.value;
  return { exit: 0, text: `${revision}\n${bytes} bytes match the signature`, value: found.value };
}
