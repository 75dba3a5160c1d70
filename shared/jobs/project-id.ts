// Ids of projects and documents. A project is a UUID of version 8 (RFC 9562 §5.8) that sorts by its creation
// time and ends in `ff`; its documents have their index in place of the last byte. So a document names its
// project, no list of documents can get lost, and neither id can be an upload's (version 7).
import { PROJECT_DOCUMENTS_MAX } from './limits.ts';

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{10}([0-9a-f]{2})$/;
const PROJECT = 'ff';
/** Digits before the last byte. */
const COMMON = -2;

const ending = (id: string): string | undefined => ID.exec(id)?.[1];

/** A project's id: that of a document with `ff` at its end. */
export const PROJECT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{10}ff$/;
export const isProjectId = (text: string): boolean => PROJECT_ID.test(text);

export function isDocumentId(text: string): boolean {
  const last = ending(text);
  return last !== undefined && Number.parseInt(last, 16) < PROJECT_DOCUMENTS_MAX;
}

/** A project's id from a time-ordered unique id (version 7). */
export const projectIdOf = (unique: string): string => `${unique.slice(0, 14)}8${unique.slice(15, COMMON)}${PROJECT}`;

export const documentId = (project: string, index: number): string =>
  `${project.slice(0, COMMON)}${index.toString(16).padStart(2, '0')}`;

/** Returns the project of a document, and its index. */
export const projectOf = (document: string): string => `${document.slice(0, COMMON)}${PROJECT}`;
export const indexOf = (document: string): number => Number.parseInt(document.slice(COMMON), 16);
