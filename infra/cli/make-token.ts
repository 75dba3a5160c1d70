// auricle token, auricle token check: tokens of the local stack, and the claims of any token as an edge reads them.
import path from 'node:path';
import { decodeJwt, errors, importJWK, SignJWT } from 'jose';
import { jsonOf } from '../../shared/json-text.ts';
import { readClaims } from '../../shared/tenant/claims.ts';
import { type Answer, impossible, wrong } from './answer.ts';
import type { Arguments } from './options.ts';
import { readText } from './place.ts';
import { table } from './table.ts';

/** Lifetime of a token that names no `exp`, s: a working day. */
const TOKEN_S = 8 * 3_600;

/** `auricle token [CLAIM=VALUE…]`: a token of the local stack, with its developer's claims where none are given. */
export async function makeToken({ operands, state }: Pick<Arguments, 'operands' | 'state'>): Promise<Answer> {
  const key = jsonOf(readText(path.join(state, 'identity', 'issuer.private.jwk.json')) ?? '');
  const own = readText(path.join(state, 'token'))?.trim();
  if (typeof key !== 'object' || key === null || own === undefined)
    return impossible(`there is no local stack in ${state}: start one with \`npm start\``);
  const given = readOperands(operands);
  if ('exit' in given) return given;
  const issued = Math.floor(Date.now() / 1_000);
  const { jti: _, ...developer } = decodeJwt(own);
  const claims = { ...developer, iat: issued, exp: issued + TOKEN_S, jti: crypto.randomUUID(), ...given.claims };
  const read = readClaims(claims);
  if (!read.ok) return wrong(`no edge takes such a token: ${read.refusal.detail}`);
  const { kid } = key as { kid?: string };
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', ...(kid !== undefined && { kid }) })
    .sign(await importJWK(key, 'ES256'));
  return { exit: 0, text: token, value: { token, claims } };
}

/** Reads claims. A value is JSON where it can be, else text; a dot in a name leads into an object. */
function readOperands(operands: readonly string[]): { readonly claims: Record<string, unknown> } | Answer {
  const claims: Record<string, unknown> = {};
  for (const operand of operands) {
    const [, name, member, text] = /^([A-Za-z_]+)(?:\.([A-Za-z]+))?=(.*)$/s.exec(operand) ?? [];
    if (name === undefined || text === undefined) return wrong(`"${operand}" is not CLAIM=VALUE`);
    const value = jsonOf(text) ?? text;
    claims[name] = member === undefined ? value : { ...Object(claims[name]), [member]: value };
  }
  return { claims };
}

/** `auricle token check`: the claims of a token with their defaults. The signature is the edge's to verify. */
export async function checkToken(token: string): Promise<Answer> {
  let payload: unknown;
  try {
    payload = decodeJwt(token);
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error;
    return wrong('this is no JSON Web Token');
  }
  const read = readClaims(payload);
  if (!read.ok) return impossible(`an edge refuses the token: ${read.refusal.detail}`);
  const { scopes, expires, ...others } = read.value;
  const claims = { ...others, scopes: [...scopes], expires: new Date(expires * 1_000).toISOString() };
  const rows = Object.entries(claims).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(' ') : typeof value === 'object' ? JSON.stringify(value) : String(value ?? '–'),
  ]);
  return { exit: 0, text: table(rows), value: claims };
}
