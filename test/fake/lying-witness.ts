// A witness that lies as it likes: it has the key of the one that is deployed, and signs what and when it wants.
import { cosigner } from '../../shared/audit/cosignature.ts';
import { formatSignature, openSigningKey, splitNote } from '../../shared/audit/note.ts';
import { readWitnessRequest } from '../../shared/audit/witness-request.ts';
import { WITNESS, witnessSeed } from './witness.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

/** The answer to a question of `add-checkpoint`. */
export async function signedBy(
  body: Uint8Array<ArrayBuffer>,
  { over = 'the text', laterMs = 0 }: { readonly over?: 'the text' | 'all of it'; readonly laterMs?: number } = {},
): Promise<Response> {
  const { checkpoint } = readWitnessRequest(body) ?? {};
  const note = new TextDecoder().decode(checkpoint);
  const all = over === 'all of it';
  const key = await openSigningKey(witnessSeed);
  const sign = (message: Uint8Array) => key.signer(WITNESS).sign(message);
  const at = () => Math.floor((Date.now() + laterMs) / 1_000);
  const signer = cosigner(WITNESS, { publicKey: key.publicKey, sign }, at);
  const signature = await signer.sign(bytes(all ? note : (splitNote(bytes(note))?.text ?? '')));
  // An empty line before the signature: then all that is before it is the text.
  return new Response(`${all ? '\n' : ''}${formatSignature({ ...signer, signature })}`);
}
