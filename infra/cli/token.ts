import path from 'node:path';
import type { Arguments } from './options.ts';
import { type Environment, readText } from './place.ts';

/** Reports whether a header can carry the token: visible ASCII only. */
export const isToken = (token: string): boolean => /^[\x21-\x7e]+$/.test(token);

/**
 * The token to send: the one given, else AURICLE_TOKEN, else that of the local stack. The last one goes to the local
 * stack only: a development token is of no use to another edge, and another edge must not see it.
 */
export function findToken(
  given: Pick<Arguments, 'isLocalEdge' | 'state' | 'token'>,
  { AURICLE_TOKEN }: Environment,
): string | undefined {
  if (given.token) return given.token;
  if (AURICLE_TOKEN) return AURICLE_TOKEN;
  return given.isLocalEdge ? readText(path.join(given.state, 'token'))?.trim() : undefined;
}
