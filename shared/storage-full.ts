// Recognises a full disk or account in the errors of Node, Durable Objects and storage services.
import { type Refusal, refuse } from './refusal.ts';

/** Insufficient Storage (RFC 4918 §11.5). */
export const INSUFFICIENT_STORAGE = 507;
const CODES: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'SQLITE_FULL', 'InsufficientStorage'];
const WORDS = /\bSQLITE_FULL\b|database or disk is full/;

export function isStorageFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, statusCode } = error as { readonly code?: unknown; readonly statusCode?: unknown };
  if (CODES.includes(code) || statusCode === INSUFFICIENT_STORAGE || WORDS.test(error.message)) return true;
  return error.cause !== undefined && isStorageFull(error.cause);
}

/** Refuses what cannot be stored by the component whose storage is full. */
export const refuseFull = (component: 'edge' | 'functions' | 'agent', detail?: string): Refusal =>
  refuse('storage_full', { component }, detail);
