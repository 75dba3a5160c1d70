// Names of subjects in the log: a digest under a salt that is stored and destroyed with the subject's secret.
// Until then the keys show that two entries name the same subject.
import { toBase64Url } from '../../../shared/audit/commitment.ts';
import { bytesOf, readPointer, readSecret, type SubjectPlace, type SubjectSecret } from '../sidecar/sidecar-subject.ts';

export async function saltedName(secret: SubjectSecret, subject: string): Promise<string> {
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', bytesOf(secret.salt) as BufferSource, hmac, false, ['sign']);
  return toBase64Url(new Uint8Array(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(subject))));
}

/** Returns `undefined` for a subject without hidden values. */
export async function nameInLog(place: SubjectPlace, subject: string): Promise<string | undefined> {
  const { sid } = await readPointer(place, subject);
  const secret = sid === undefined ? undefined : await readSecret(place, sid);
  return secret && saltedName(secret, subject);
}
