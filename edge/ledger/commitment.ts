// The caller of a read of the audit record, as the log names it: a token with a subject is never read as anonymous.
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { AUDIT_READ_TIMEOUT_MS } from '../limits.ts';
import { gateName } from './record.ts';

/** The claims that identify a caller. */
export type Reader = Pick<Claims, 'tenant'> & { readonly subject?: Claims['subject'] };

/** The commitment of the tenant's gate to the subject; `undefined` when the token has none. */
export async function commitmentOfReader(
  zone: string,
  { tenant, subject }: Reader,
  { env, runtime }: RequestContext,
): Promise<Result<string | undefined>> {
  if (subject === undefined) return ok(undefined);
  const name = gateName({ tenant, zones: [zone] }, [zone]);
  const query = async () => env.GATE.getByName(name).commitmentOf(subject);
  const found = await within(query(), AUDIT_READ_TIMEOUT_MS, runtime).catch((): typeof late => late);
  return found === late ? no(refuse('audit_unreachable', undefined, 'the gate does not answer')) : ok(found);
}
