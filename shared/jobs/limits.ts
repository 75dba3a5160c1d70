import { MiB } from '../bytes.ts';

/** Chapters of one project: three rows each, and all of them begin in one transaction, which takes 100. */
export const PROJECT_DOCUMENTS_MAX = 32;
/** Segments of one document: a job each, numbered with three digits, and one list in one row. */
export const PROJECT_SEGMENTS_MAX = 1_000;
/**
 * Attempts of an edit that lost to another of the same document, each sealed again, before its caller gets
 * the conflict.
 */
export const PROJECT_EDIT_TRIES_MAX = 4;
/** Projects of one page of a list, with their documents. */
export const PROJECT_LIST_ROWS_MAX = 20;
/** Block of a file, in memory while it is sent; 4 GiB take a fiftieth of the blocks a blob may have. */
export const UPLOAD_BLOCK_BYTES = 4 * MiB;
/** Working day and its evening in one file; also stops compressed silence that unpacks without end. */
export const UPLOAD_S = 12 * 3600;
/**
 * Pieces of UPLOAD_S cut at a silence, none shorter than 0.8 of UPLOAD_PIECE_S; one transaction takes 100.
 */
export const UPLOAD_PIECES_MAX = 90;
/** Time after which a dead agent's job returns to the queue; a live one renews it three times. */
export const JOB_VISIBILITY_S = 60;
/** Uploads of one page of a list. */
export const UPLOAD_LIST_ROWS_MAX = 100;
/** Long poll for news of an upload: under the half minute after which proxies give up. */
export const UPLOAD_WAIT_S = 20;
/** Open long polls of one tenant at one instance, and followers at one isolate of the edge. */
export const UPLOAD_FOLLOWERS_MAX = 64;
/** Longest call that reports usage: the edge writes one row; a failed report is repeated a minute later. */
export const USAGE_REPORT_MS = 5_000;
/** Life of the token of a call between edge and functions; each call makes a new one. */
export const SERVICE_TOKEN_S = 60;
