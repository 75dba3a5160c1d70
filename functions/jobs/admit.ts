// Admits files that have arrived in `uploads`.

import { readUploadBlob, UPLOADS, type UploadPlace, uploadBlob } from '../../shared/jobs/paths.ts';
import { isOver } from '../../shared/jobs/state.ts';
import { UPLOAD_HEAD_BYTES } from '../../shared/seal/envelope.ts';
import type { JobContext } from './context.ts';
import { decideAdmission } from './decide-admission.ts';
import { placeOf, type UploadRecord } from './record.ts';
import { release } from './release.ts';
import { settle } from './settle.ts';
import { readUpload, step } from './step.ts';

/**
 * Admits a blob of any name. A blob without a row is deleted, since addresses are given for known names
 * only.
 */
export async function admitFile(context: JobContext, name: string): Promise<void> {
  const place = readUploadBlob(name);
  const record = place && (await readUpload(context, place));
  if (record) return admitRecord(context, record);
  context.log({ what: 'forged', detail: UPLOADS, ...(place && { tenant: place.tenant, upload: place.id }) });
  await context.blobs.remove(UPLOADS, name);
}

/** Looks at the file of a known upload, if it is there, and lets the work begin or not. */
export async function admitUpload(context: JobContext, place: UploadPlace): Promise<void> {
  const record = await readUpload(context, place);
  if (record) await admitRecord(context, record);
}

async function admitRecord(context: JobContext, record: UploadRecord): Promise<void> {
  const place = placeOf(record);
  const { status } = record.state;
  if (isOver(status)) return settle(context, place);
  if (status === 'granted' || status === 'uploaded') {
    const found = await context.blobs.find(UPLOADS, uploadBlob(place));
    if (!found) return;
    // Functions do not read plain files.
    const { sealed } = record.request;
    const start = sealed ? await context.blobs.start(UPLOADS, found, UPLOAD_HEAD_BYTES) : undefined;
    // Replaced or deleted between two looks: the event of the newer version comes, or the timer looks again.
    if (sealed && !start) return;
    const keys = context.settings.ZONE_KEYS[record.request.zone] ?? [];
    const stepped = await step(context, place, (now) => decideAdmission(now, { ...found, start }, keys));
    const refusal = stepped?.record.state.refusal;
    if (stepped?.moved && refusal) {
      context.log({ what: 'refused', tenant: place.tenant, upload: place.id, detail: refusal.reason });
    }
    if (stepped && isOver(stepped.record.state.status)) return settle(context, place);
  }
  await release(context, place.tenant, record.request);
}
