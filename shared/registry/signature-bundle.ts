// Stored and sent form of a model signature: a sigstore bundle 0.3 in JSON, with a key instead of a
// certificate.
import { z } from 'zod';
import { fromBase64 } from '../base64.ts';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { type Envelope, envelope, openEnvelope, readPayload } from './signature-envelope.ts';
import { algorithmOf, digestOf, type SignerKey } from './signature-key.ts';
import { type Manifest, readManifest } from './signature-manifest.ts';

const BUNDLE_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json';

export const bundle = z.looseObject({
  mediaType: z.literal(BUNDLE_TYPE),
  verificationMaterial: z.looseObject({
    publicKey: z.looseObject({ hint: z.string().max(128) }),
  }),
  // The format has exactly one.
  dsseEnvelope: envelope.extend({ signatures: envelope.shape.signatures.max(1) }),
});
export type Bundle = z.infer<typeof bundle>;

export function makeBundle(signed: Envelope): Bundle {
  const [{ keyid: hint, sig } = { keyid: '', sig: '' }] = signed.signatures;
  return {
    mediaType: BUNDLE_TYPE,
    verificationMaterial: { publicKey: { hint }, tlogEntries: [] },
    dsseEnvelope: { ...signed, signatures: [{ keyid: '', sig }] },
  };
}

export interface SignedManifest {
  readonly manifest: Manifest;
  /** Author of the revision. */
  readonly signer: string;
}

const invalid = (rule: string) => no(refuse('signature_invalid', { rule }));

/** Verifies a bundle against `keys` and returns its manifest. Does not check the files (`verify-files`). */
export async function openBundle(sent: unknown, keys: readonly SignerKey[]): Promise<Result<SignedManifest>> {
  const parsed = bundle.safeParse(sent);
  if (!parsed.success) return invalid('it is no sigstore bundle 0.3 with one signature by a key');
  const opened = await openEnvelope(parsed.data.dsseEnvelope, keys);
  const [signer] = opened?.signers ?? [];
  if (!opened || signer === undefined)
    return invalid('its signature is not by a known key, or its content was changed');
  const manifest = readManifest(readPayload(opened.payload));
  if (!manifest) return invalid('what it signs is no model, or does not agree with itself');
  const known = keys.filter(({ name }) => name === signer).map(({ key }) => algorithmOf(fromBase64(key)));
  const goesTogether = known.some((algorithm) => algorithm !== undefined && digestOf[algorithm] === manifest.hash);
  return goesTogether ? ok({ manifest, signer }) : invalid('its digests are not of its key’s family');
}
