// Where an upload and what becomes of it lie: tenant, id, run and kind ↔ blob name. Whoever may write a blob chooses its
// name, so a name is read strictly, and read back must give the same name.
import { limits } from '../limits.ts';

/** Containers of the storage account. */
export const UPLOADS = 'uploads';
export const OUTCOMES = 'outcomes';

const TENANT = /^[a-z0-9][a-z0-9_-]{0,62}$/;
/** UUID version 7 in lower case: sorts by the time it was made. */
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** Without leading zeros, so that a number has one spelling. */
const NUMBER = /^(0|[1-9][0-9]{0,5})$/;

export const isUploadId = (text: string): boolean => ID.test(text);

/** One upload of one tenant. */
export interface UploadPlace {
  readonly tenant: string;
  readonly id: string;
}

/**
 * What agents write for one run of an upload, by its name below the run:
 * `plan` (the pieces and where each begins), `pieces/N` (sound of a piece), `results/N` (what was recognised in it),
 * `transcript` (the whole), `refusal` (why there is none; its reason is in the metadata, it has no bytes).
 */
export type OutcomeName = 'plan' | 'transcript' | 'refusal' | `pieces/${number}` | `results/${number}`;

export interface OutcomePlace extends UploadPlace {
  /** Which run of the upload, from 1. */
  readonly run: number;
  readonly name: OutcomeName;
}

/** Name of the uploaded file in the container `uploads`. */
export const uploadBlob = ({ tenant, id }: UploadPlace): string => `${tenant}/${id}`;

/** Name of an outcome in the container `outcomes`. */
export const outcomeBlob = ({ tenant, id, run, name }: OutcomePlace): string => `${tenant}/${id}/${run}/${name}`;

/** What all outcomes of an upload begin with. */
export const outcomePrefix = ({ tenant, id }: UploadPlace): string => `${tenant}/${id}/`;

/** @returns `undefined` for a name that nobody was told to write. */
export function readUploadBlob(blob: string): UploadPlace | undefined {
  const [tenant = '', id = '', ...rest] = blob.split('/');
  return rest.length === 0 && TENANT.test(tenant) && ID.test(id) ? { tenant, id } : undefined;
}

/** @returns `undefined` for a name that nobody was told to write. */
export function readOutcomeBlob(blob: string): OutcomePlace | undefined {
  const [tenant = '', id = '', run = '', ...rest] = blob.split('/');
  if (!TENANT.test(tenant) || !ID.test(id) || !NUMBER.test(run) || run === '0') return undefined;
  const name = readOutcomeName(rest.join('/'));
  return name && { tenant, id, run: Number(run), name };
}

export function readOutcomeName(name: string): OutcomeName | undefined {
  if (name === 'plan' || name === 'transcript' || name === 'refusal') return name;
  const [folder, number = '', ...rest] = name.split('/');
  if ((folder !== 'pieces' && folder !== 'results') || rest.length > 0 || !NUMBER.test(number)) return undefined;
  const piece = Number(number);
  return piece < limits.uploadPieces.value ? `${folder}/${piece}` : undefined;
}

/** The piece that a name is about. */
export const pieceOf = (name: OutcomeName): number | undefined =>
  name.includes('/') ? Number(name.slice(name.indexOf('/') + 1)) : undefined;
