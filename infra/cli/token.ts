import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Arguments, DEFAULT_EDGE } from './arguments.ts';

const LOCAL_TOKEN = path.resolve(fileURLToPath(import.meta.url), '../../../.auricle/token');

/** Whether a header can carry it: visible characters of ASCII, and no others. */
export const isToken = (token: string): boolean => /^[\x21-\x7e]+$/.test(token);

/**
 * The token to send: the one given, else AURICLE_TOKEN, else that of the local stack. The last one goes to the local
 * stack only: a development token is of no use to another edge, but it is nobody else's business either.
 */
export function findToken(
  given: Pick<Arguments, 'edge' | 'token'>,
  environment: Record<string, string | undefined>,
  readLocal: () => string = () => readFileSync(LOCAL_TOKEN, 'utf8'),
): string | undefined {
  if (given.token) return given.token;
  if (environment.AURICLE_TOKEN) return environment.AURICLE_TOKEN;
  if (given.edge !== DEFAULT_EDGE) return undefined;
  try {
    return readLocal().trim();
  } catch {
    return undefined;
  }
}
