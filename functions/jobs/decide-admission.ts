// Decides whether a file that has arrived is admitted. Pure.

import type { UploadEvent } from '../../shared/jobs/state.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { readHead, UPLOAD_HEAD_BYTES } from '../../shared/seal/envelope.ts';
import type { ZoneKey } from '../../shared/seal/zone-key.ts';
import { largest, type UploadRecord } from './record.ts';

export interface Arrival {
  readonly bytes: number;
  readonly etag: string;
  /** The first bytes, of a sealed file only: all that functions ever see. */
  readonly start?: Uint8Array | undefined;
}

/** Returns the events that follow from the file, in order. */
export function decideAdmission(
  record: UploadRecord,
  { bytes, etag, start }: Arrival,
  zoneKeys: readonly ZoneKey[],
): UploadEvent[] {
  const refusal = checkSize(record, bytes) ?? checkHead(record, start, zoneKeys);
  const arrived: UploadEvent = { type: 'arrived', bytes, etag };
  return [arrived, refusal ? { type: 'refused', run: record.state.run, refusal } : { type: 'admitted' }];
}

function checkSize({ request }: UploadRecord, bytes: number): Refusal | undefined {
  if (bytes === 0) return refuse('audio_empty');
  if (bytes > largest(request)) return refuse('upload_too_large', { limit: largest(request) });
  if (request.bytes !== undefined && bytes !== request.bytes)
    return refuse('upload_size_differs', { bytes, told: request.bytes });
  return undefined;
}

function checkHead(
  { request, tenant, id }: UploadRecord,
  start: Uint8Array | undefined,
  zoneKeys: readonly ZoneKey[],
): Refusal | undefined {
  if (!request.sealed) return undefined;
  const invalid = (rule: string, detail?: string) => refuse('envelope_invalid', { rule }, detail);
  const read = readHead((start ?? new Uint8Array()).subarray(0, UPLOAD_HEAD_BYTES));
  if (!read.ok) return invalid('its head cannot be read', read.refusal.detail);
  const { head } = read.value;
  if (head.tenant !== tenant || head.upload !== id) return invalid('its head names another upload');
  if (head.name !== 'upload') return invalid('its head names another kind of file');
  if (!zoneKeys.some(({ kid }) => kid === head.key)) return invalid('it is not sealed to the key of its zone');
  return undefined;
}
