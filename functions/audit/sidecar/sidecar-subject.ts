// The secret of a subject, without which nothing hidden about it opens. A keyed hash of its commitment leads
// to a random number, which its records bear. Without that pointer the number reveals no subject.
import { z } from 'zod';
import { toBase64Url } from '../../../shared/audit/commitment.ts';
import { fromBase64, toBase64 } from '../../../shared/base64.ts';
import { AUDIT_RACE_TRIES_MAX } from '../limits.ts';
import type { LogStore, StoredFile } from '../log/log-store.ts';
import type { Month, RetentionName } from './retention.ts';
import { KEY_BYTES } from './sidecar-box.ts';
import { pointerName, subjectName } from './sidecar-names.ts';
import type { TenantKey } from './sidecar-tenant.ts';

const SID_BYTES = 16;
/** A pointer that leads nowhere is as long as one that leads somewhere. */
const NOWHERE = '-'.repeat(22);

const secretOf = z.object({
  v: z.literal(1),
  /** 32 bytes in base64. */
  key: z.string(),
  /** With which the subject is named in the log when this is destroyed: 16 bytes in base64. */
  salt: z.string(),
  /** By class: last month with records. */
  used: z.record(z.string(), z.string()),
});
export type SubjectSecret = z.infer<typeof secretOf>;

/** Location of a tenant's subjects. */
export interface SubjectPlace {
  readonly store: LogStore;
  readonly zone: string;
  readonly tenant: string | undefined;
  readonly key: TenantKey;
}

export interface Subject {
  readonly sid: string;
  readonly secret: SubjectSecret;
}

export const bytesOf = (base64: string): Uint8Array => {
  const bytes = fromBase64(base64);
  if (!bytes) throw new Error('a secret of the sidecar is not base64');
  return bytes;
};

interface Pointer {
  readonly name: string;
  readonly stored: StoredFile | undefined;
  /** `undefined` when it leads nowhere. */
  readonly sid: string | undefined;
}

export async function readPointer({ store, zone, tenant, key }: SubjectPlace, subject: string): Promise<Pointer> {
  const name = pointerName(zone, tenant, await key.tag(subject));
  const stored = await store.read('sidecar', name);
  const sid = stored && z.string().parse(await key.open(stored.bytes, name));
  return { name, stored, sid: sid === NOWHERE ? undefined : sid };
}

/** `false` when it is not as it was read, or when that is unknown. */
export async function leadNowhere({ store, key }: SubjectPlace, { name, stored }: Pointer): Promise<boolean> {
  return stored !== undefined && store.replace('sidecar', name, await key.seal(NOWHERE, name), stored.version);
}

/** `undefined` when it was destroyed, or never was. */
export async function readSecret(place: SubjectPlace, sid: string): Promise<SubjectSecret | undefined> {
  return (await readWithVersion(place, sid))?.secret;
}

async function readWithVersion({ store, zone, tenant, key }: SubjectPlace, sid: string) {
  const name = subjectName(zone, tenant, sid);
  const stored = await store.read('sidecar', name);
  return stored && { name, version: stored.version, secret: secretOf.parse(await key.open(stored.bytes, name)) };
}

/** The secret that hides what happens now, made if there is none; it knows of which classes and months it has records. */
export async function makeSubject(
  place: SubjectPlace,
  subject: string,
  ret: RetentionName,
  month: Month,
): Promise<Subject> {
  for (let tries = 0; tries < AUDIT_RACE_TRIES_MAX; tries += 1) {
    const pointer = await readPointer(place, subject);
    const known = pointer.sid === undefined ? undefined : await markUsed(place, pointer.sid, ret, month);
    if (known) return known;
    const made = await pointToNew(place, pointer, ret, month);
    if (made) return made;
  }
  throw new Error('the secret of a subject could not be made');
}

/** The secret, which says that there are records of that class in that month; `undefined` when it was destroyed. */
async function markUsed(
  place: SubjectPlace,
  sid: string,
  ret: RetentionName,
  month: Month,
): Promise<Subject | undefined> {
  for (let tries = 0; tries < AUDIT_RACE_TRIES_MAX; tries += 1) {
    const found = await readWithVersion(place, sid);
    if (!found) return undefined;
    const { name, version, secret } = found;
    if ((secret.used[ret] ?? '') >= month) return { sid, secret };
    const marked = { ...secret, used: { ...secret.used, [ret]: month } };
    await place.store.replace('sidecar', name, await place.key.seal(marked, name), version);
  }
  throw new Error('the secret of a subject changes all the time');
}

async function pointToNew(
  place: SubjectPlace,
  pointer: Pointer,
  ret: RetentionName,
  month: Month,
): Promise<Subject | undefined> {
  const { store, zone, tenant, key } = place;
  const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));
  const sid = toBase64Url(random(SID_BYTES));
  const secret: SubjectSecret = {
    v: 1,
    key: toBase64(random(KEY_BYTES)),
    salt: toBase64(random(SID_BYTES)),
    used: { [ret]: month },
  };
  const name = subjectName(zone, tenant, sid);
  await store.create('sidecar', name, await key.seal(secret, name));
  const { stored } = pointer;
  const box = await key.seal(sid, pointer.name);
  const pointed = stored
    ? await store.replace('sidecar', pointer.name, box, stored.version)
    : await store.create('sidecar', pointer.name, box);
  if (pointed) return { sid, secret };
  // After a "no" it may be there all the same.
  const again = await store.read('sidecar', pointer.name);
  if (again && (await key.open(again.bytes, pointer.name)) === sid) return { sid, secret };
  // No pointer has ever led here.
  await store.remove('sidecar', name);
  return undefined;
}
