// Who reads the record, as the log will have it: nobody reads it unnamed whose token names somebody.
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { gateName } from './record.ts';

/** Of a token, as far as it is about who asks. */
export type Reader = Pick<Claims, 'tenant'> & { readonly subject?: Claims['subject'] };

/** The commitment of the tenant's gate, or of its spare while the gate is away; `undefined` when the token names nobody. */
export async function commitmentOfReader(
  zone: string,
  { tenant, subject }: Reader,
  { env, surroundings }: RequestContext,
): Promise<Result<string | undefined>> {
  if (subject === undefined) return ok(undefined);
  const name = gateName({ tenant, zones: [zone] }, [zone]);
  for (const those of [env.GATE, env.SPARE]) {
    const ask = async () => those?.getByName(name).commitmentOf(subject);
    const found = await within(ask(), limits.auditReadMs.value, surroundings).catch(() => undefined);
    if (found !== late && found !== undefined) return ok(found);
  }
  return no(refuse('audit_unreachable', undefined, 'the gate does not answer'));
}
