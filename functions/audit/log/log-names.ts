// Names of the blobs of a log. A log belongs to a zone and a year.

import type { Hash } from '../../../shared/audit/tree.ts';
import { toBase64 } from '../../../shared/base64.ts';
import type { Area } from './log-store.ts';
import type { LogFile } from './right-edge.ts';

export const yearOf = (now: number): number => new Date(now).getUTCFullYear();

export const lockName = (zone: string): string => `${zone}/lock`;
/** Marks a diverged log: `diverged.ts`. */
export const divergedName = (zone: string): string => `${zone}/diverged`;
/** Marks a log that the witness refuses. */
export const refusedName = (zone: string, witness: string): string => `${zone}/refused/${encodeURIComponent(witness)}`;
/** Marks an unproven claim of a witness: `doubted.ts`. */
export const doubtedName = (zone: string, witness: string): string => `${zone}/doubted/${encodeURIComponent(witness)}`;
/** One state for all years, so that one swap ends a year and begins the next. */
export const stateName = (zone: string): string => `${zone}/state`;
export const checkpointName = (zone: string, year: number): string => `${zone}/${year}/checkpoint`;
/** The newest checkpoint that witnesses have signed. */
export const witnessedName = (zone: string, year: number): string => `${zone}/${year}/witnessed`;
export const signedName = (zone: string, year: number, size: number): string => `${zone}/${year}/checkpoints/${size}`;

/** A checkpoint of that size that enough witnesses have signed: the first of its size. */
export const cosignedName = (zone: string, year: number, size: number): string => `${zone}/${year}/witness/${size}`;

/** A number as a part of a name or a key: those of greater ones come after it. */
export const digits = (value: number): string => String(value).padStart(16, '0');

/** A name with the root in it: whatever lies there is what leads to that root. */
const named = (size: number, root: Hash): string => {
  return `${digits(size)}-${toBase64(root).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`;
};

/** Prefix of the names of records. */
export const recordsOf = (zone: string, year: number): string => `${zone}/${year}/wal/`;
export const recordName = (zone: string, year: number, size: number, root: Hash): string =>
  recordsOf(zone, year) + named(size, root);
/** Returns the size of the log after the record of that name. */
export function sizeOfRecord(name: string): number | undefined {
  const [, size] = /\/wal\/(\d{16})-/.exec(name) ?? [];
  return size === undefined ? undefined : Number(size);
}

/** Hidden values of the entries from `from` up to that size. */
export const sidecarName = (
  zone: string,
  year: number,
  from: number,
  { size, root }: { readonly size: number; readonly root: Hash },
): string => `${zone}/${year}/${digits(from)}-${named(size, root)}`;

/** A full tile never changes, a partial one is of use until it is full. */
export const fileArea = ({ partial }: Pick<LogFile, 'partial'>): Area => (partial ? 'state' : 'log');
export const fileName = (zone: string, year: number, path: string): string => `${zone}/${year}/${path}`;
