// Signers, and the statements they sign.
import { createHash } from 'node:crypto';
import { openP256Key, toDer } from '../../../shared/audit/ecdsa.ts';
import { toBase64 } from '../../../shared/base64.ts';
import { beginCanary, type CanaryRun, stepUp } from '../../../shared/registry/canary.ts';
import type { Evidence } from '../../../shared/registry/evidence.ts';
import { digestOfFiles } from '../../../shared/registry/revision.ts';
import { type Bundle, makeBundle } from '../../../shared/registry/signature-bundle.ts';
import { type Envelope, signPayload } from '../../../shared/registry/signature-envelope.ts';
import { openSm2Key, type SignerKey, type SigningKey } from '../../../shared/registry/signature-key.ts';
import { writeManifest } from '../../../shared/registry/signature-manifest.ts';
import type { Sla } from '../../../shared/registry/sla.ts';
import type { Standing } from '../../../shared/registry/stage.ts';
import { writeStatement } from '../../../shared/registry/statement.ts';

export interface Person {
  readonly name: string;
  readonly key: SigningKey;
}

export async function makeP256(): Promise<SigningKey> {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const key = await openP256Key(toBase64(new Uint8Array(await crypto.subtle.exportKey('pkcs8', pair.privateKey))));
  if (!key) throw new Error('no key');
  return { publicKey: key.publicKey, sign: async (message) => toDer(await key.sign(message)) };
}

export const makeSm2 = (): SigningKey =>
  openSm2Key(crypto.getRandomValues(new Uint8Array(32)).with(0, 1) as Uint8Array);

export const signerOf = ({ name, key }: Person): SignerKey => ({ name, key: toBase64(key.publicKey) });

const hashOf = (name: string, content: string) => createHash(name).update(content).digest('hex');

/** A revision with one file of `content`, and its author's bundle. */
export async function makeRevision(content: string, author: Person, hash: 'sha256' | 'sm3' = 'sha256', sla?: Sla) {
  const digests = (name: string) => [{ name: 'model.onnx', digest: hashOf(name, content) }];
  const revision = digestOfFiles(digests('sha256'));
  const payload = writeManifest({ name: 'reference-en', hash, files: digests(hash), revision, sla });
  const bundle: Bundle = makeBundle(await signPayload(payload, author.key));
  return { revision, bundle };
}

export interface Move {
  readonly revision: string;
  readonly from: Standing;
  readonly to: Standing;
  readonly at: number;
  readonly evidence?: readonly Evidence[];
  readonly model?: string;
}

export async function signMove(asked: Move, ...people: readonly Person[]): Promise<Envelope> {
  const payload = writeStatement({ model: 'reference-en', ...asked, evidence: [...(asked.evidence ?? [])] });
  const signed = await Promise.all(people.map(({ key }) => signPayload(payload, key)));
  return { ...(signed[0] as Envelope), signatures: signed.flatMap(({ signatures }) => signatures) };
}

const tool = 'test 1';
const speakers = (after: number) =>
  Array.from({ length: 100 }, () => ({ utterances: 20, words: 300, before: 24, after }));

/** Evidence that opens each gate. */
export const quality = (after = 20): Evidence => ({
  ...{ kind: 'quality', tool, language: 'en', set: 'made', seed: 1 },
  speakers: speakers(after),
});
export const forGrey = (): Evidence[] => [
  { kind: 'scan', tool, verdict: 'PASS', facts: {} },
  { kind: 'load', tool, verdict: 'PASS', facts: { seconds: 2 } },
  { kind: 'latency', tool, sla: 200, windows: [180, 120, 121, 119] },
  quality(),
];
export const forCanary = (): Evidence[] => [
  { kind: 'stability', tool, streams: 200, crashes: 0 },
  { kind: 'disagreement', tool, verdict: 'PASS', streams: 200, facts: {} },
];

/** A canary at that share, with `streams` streams and bad ones of both sides. */
export function runAt(steps: number, streams: number, canary: number, stable: number): CanaryRun {
  let run = beginCanary(0);
  for (let at = 0; at < steps; at += 1) run = stepUp(run, 0);
  return { ...run, streams, bad: [{ share: run.share, canary, stable }] };
}
export const rates = (run: CanaryRun): Evidence => ({ kind: 'rates', tool, run });
