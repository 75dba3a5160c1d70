// How the log names a subject: by a digest under a salt that lies with the subject's secret and is destroyed with it. Until
// then whoever has the keys can tell that two entries are about the same one; afterwards nobody can.
import { toBase64Url } from '../../../shared/audit/commitment.ts';
import { bytesOf, readPointer, readSecret, type SubjectPlace, type SubjectSecret } from '../sidecar/sidecar-subject.ts';

export async function saltedName(secret: SubjectSecret, subject: string): Promise<string> {
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', bytesOf(secret.salt) as BufferSource, hmac, false, ['sign']);
  return toBase64Url(new Uint8Array(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(subject))));
}

/** `undefined` for somebody about whom nothing is hidden. */
export async function nameInLog(place: SubjectPlace, subject: string): Promise<string | undefined> {
  const { sid } = await readPointer(place, subject);
  const secret = sid === undefined ? undefined : await readSecret(place, sid);
  return secret && saltedName(secret, subject);
}
