// Blob names of an upload and its outcomes: tenant, id, run and kind ↔ blob name. The writer of a blob
// chooses its name, so parsing is strict, and formatting the result must give the same name.

import { PROJECT_SEGMENTS_MAX, UPLOAD_PIECES_MAX } from './limits.ts';
import { isDocumentId, isProjectId } from './project-id.ts';

/** Containers of the storage account. */
export const UPLOADS = 'uploads';
export const OUTCOMES = 'outcomes';

const TENANT = /^[a-z0-9][a-z0-9_-]{0,62}$/;
/** UUID version 7 in lower case: sorts by the time it was made. */
export const UPLOAD_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** Number without leading zeros, so that it has one spelling. */
const NUMBER = /^(0|[1-9][0-9]{0,5})$/;

export const isUploadId = (text: string): boolean => UPLOAD_ID.test(text);

/** Reports the id of a record with jobs: an upload, or a document of a text project. */
export const isWorkId = (text: string): boolean => isUploadId(text) || isDocumentId(text);

/** Reports the id of a record with a row and a notified end. */
export const isRecordId = (text: string): boolean => isWorkId(text) || isProjectId(text);

/** An upload or a document of one tenant. */
export interface UploadPlace {
  readonly tenant: string;
  readonly id: string;
}

/**
 * Outcomes of a run by name below it: `language` (no bytes; the metadata have it), `plan` (pieces and where each begins), `pieces/N` (sound of a piece),
 * `results/N` (its recognition), `transcript` (the whole), `refusal` (no bytes; the reason is in the
 * metadata). The pieces of a document are texts of segments, the results their sound, and the transcript is
 * the sound of all; files made after a change have its edition at the end: `pieces/3-1`, `transcript-2`.
 */
type Edition = '' | `-${number}`;
export type OutcomeName =
  | 'plan'
  | 'language'
  | `transcript${Edition}`
  | `refusal${Edition}`
  | `pieces/${number}${Edition}`
  | `results/${number}${Edition}`;

/** Appends the edition to a name; the first edition is 0 and omitted. */
export const inEdition = <T extends string>(name: T, edition: number): T | `${T}-${number}` =>
  edition === 0 ? name : `${name}-${edition}`;

export interface OutcomePlace extends UploadPlace {
  /** Run of the upload, from 1. */
  readonly run: number;
  readonly name: OutcomeName;
}

/** Name of the uploaded file in the container `uploads`. */
export const uploadBlob = ({ tenant, id }: UploadPlace): string => `${tenant}/${id}`;

/** Name of an outcome in the container `outcomes`. */
export const outcomeBlob = ({ tenant, id, run, name }: OutcomePlace): string => `${tenant}/${id}/${run}/${name}`;

/** Prefix of all outcomes of an upload. */
export const outcomePrefix = ({ tenant, id }: UploadPlace): string => `${tenant}/${id}/`;

/** @returns `undefined` for a name that no address was given for. */
export function readUploadBlob(blob: string): UploadPlace | undefined {
  const [tenant = '', id = '', ...rest] = blob.split('/');
  return rest.length === 0 && TENANT.test(tenant) && isWorkId(id) ? { tenant, id } : undefined;
}

/** @returns `undefined` for a name that no address was given for. */
export function readOutcomeBlob(blob: string): OutcomePlace | undefined {
  const [tenant = '', id = '', run = '', ...rest] = blob.split('/');
  if (!TENANT.test(tenant) || !isWorkId(id) || !NUMBER.test(run) || run === '0') return undefined;
  const name = readOutcomeName(rest.join('/'), id);
  return name && { tenant, id, run: Number(run), name };
}

const WHOLE = /^(?:plan|language|(?:transcript|refusal)(-[1-9][0-9]{0,5})?)$/;
const PART = /^(?:pieces|results)\/(0|[1-9][0-9]{0,5})(-[1-9][0-9]{0,5})?$/;

/** Bound on the number of pieces. */
export const piecesMax = (id: string): number => (isUploadId(id) ? UPLOAD_PIECES_MAX : PROJECT_SEGMENTS_MAX);

function readOutcomeName(text: string, id: string): OutcomeName | undefined {
  if (!WHOLE.test(text) && !PART.test(text)) return undefined;
  const name = text as OutcomeName;
  const known = (pieceOf(name) ?? 0) < piecesMax(id) && (isDocumentId(id) || editionOf(name) === 0);
  return known ? name : undefined;
}

/** Returns the piece in a name. */
export function pieceOf(name: OutcomeName): number | undefined {
  const piece = PART.exec(name)?.[1];
  return piece === undefined ? undefined : Number(piece);
}

/** Returns the edition in a name. */
export const editionOf = (name: OutcomeName): number =>
  Number((WHOLE.exec(name)?.[1] ?? PART.exec(name)?.[2] ?? '-0').slice(1));
