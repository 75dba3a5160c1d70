// A file lies in `uploads`: whose is it, may it be worked on?
import { limits } from '../../shared/limits.ts';
import { readUploadBlob, UPLOADS, type UploadPlace, uploadBlob } from '../../shared/upload/paths.ts';
import { isOver } from '../../shared/upload/state.ts';
import { decideAdmission } from './decide-admission.ts';
import type { Office } from './office.ts';
import { placeOf, type UploadRecord } from './record.ts';
import { release } from './release.ts';
import { settle } from './settle.ts';
import { readUpload, step } from './step.ts';

/** A blob of any name. One that nobody was told to write is deleted: addresses are given for known names only. */
export async function arrive(office: Office, name: string): Promise<void> {
  const place = readUploadBlob(name);
  const record = place && (await readUpload(office, place));
  if (record) return admitRecord(office, record);
  office.log({ what: 'forged', detail: UPLOADS, ...(place && { tenant: place.tenant, upload: place.id }) });
  await office.blobs.remove(UPLOADS, name);
}

/** Looks at the file of a known upload, if it is there, and lets the work begin or not. */
export async function admit(office: Office, place: UploadPlace): Promise<void> {
  const record = await readUpload(office, place);
  if (record) await admitRecord(office, record);
}

async function admitRecord(office: Office, record: UploadRecord): Promise<void> {
  const place = placeOf(record);
  const { status } = record.state;
  if (isOver(status)) return settle(office, place);
  if (status === 'granted' || status === 'uploaded') {
    const found = await office.blobs.find(UPLOADS, uploadBlob(place));
    if (!found) return;
    // Of a plain file functions read nothing.
    const { sealed } = record.asked;
    const start = sealed ? await office.blobs.start(UPLOADS, found, limits.uploadHeadBytes.value) : undefined;
    // Replaced or deleted between two looks: the event of the newer version comes, or the timer looks again.
    if (sealed && !start) return;
    const keys = office.settings.ZONE_KEYS[record.asked.zone] ?? [];
    const stepped = await step(office, place, (now) => decideAdmission(now, { ...found, start }, keys));
    const refusal = stepped?.record.state.refusal;
    if (stepped?.moved && refusal) {
      office.log({ what: 'refused', tenant: place.tenant, upload: place.id, detail: refusal.reason });
    }
    if (stepped && isOver(stepped.record.state.status)) return settle(office, place);
  }
  await release(office, place.tenant, record.asked);
}
