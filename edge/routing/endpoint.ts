import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Settings } from '../settings.ts';

/** Returns the address of an agent without a slash at its end. In production refuses one that is not HTTPS (`pool_lost`). */
export function endpointOf({ description }: RosterEntry, { mode }: Settings): Result<string> {
  const { endpoint } = description;
  if (mode === 'production' && !endpoint.startsWith('https:')) {
    return no(refuse('pool_lost', undefined, 'the endpoint is not HTTPS'));
  }
  return ok(endpoint.replace(/\/$/, ''));
}
