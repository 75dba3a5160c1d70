// Publishes release maps as the functions do.
import { CompactSign, importJWK } from 'jose';
import { RELEASE_TYPE } from '../../shared/registry/release.ts';
import { ask } from '../fake/network.ts';
import { keys } from './authority.ts';

/** Rosters outlive tests, and their generations never fall. */
let generation = 0;

/** Returns a generation above all earlier ones, with room for nine more. */
export function nextGeneration(): number {
  generation += 10;
  return generation;
}

export async function signRelease(payload: unknown, key = keys.service, typ = RELEASE_TYPE): Promise<string> {
  return new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
    .setProtectedHeader({ alg: 'ES256', typ, kid: 'service-1' })
    .sign(await importJWK(key, 'ES256'));
}

/** Sends a signed map to the edge; the isolate follows it from the next request. */
export async function publish(release: string): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return ask('/v1/release', { method: 'PUT', headers, body: JSON.stringify({ release }) });
}
