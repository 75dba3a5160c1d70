// Whom erasing, holding and searching are about. A caller names a subject as its tokens do; from here on there are only the
// commitments that stand for it in the log of a zone: one of the tenant's gate there, and one of the gate's spare.
import { z } from 'zod';
import { commitment } from '../../shared/audit/privacy.ts';
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { zoneOf } from './exports.ts';
import { gateName } from './record.ts';

export const who = {
  subject: z.string().min(1).max(256).optional().describe('Whom it is about, as `sub` of its tokens says it'),
  commitment: commitment.optional().describe('The same as the log has it, as a disclosure shows it'),
};

export interface Who {
  readonly subject?: string | undefined;
  readonly commitment?: string | undefined;
}

/** All zones that may hold something of the tenant, or the one that is asked for. */
export function zonesOf(claims: Claims, asked: string | undefined, context: RequestContext): Result<string[]> {
  const one = zoneOf(claims, asked, context);
  if (!one.ok) return one;
  if (asked !== undefined) return ok([one.value]);
  return ok([...context.settings.auditLogs.keys()].filter((zone) => zoneOf(claims, zone, context).ok));
}

/** `undefined` when nobody is named. */
export async function commitmentsIn(
  zone: string,
  { subject, commitment: known }: Who,
  { tenant }: Pick<Claims, 'tenant'>,
  { env, surroundings }: RequestContext,
): Promise<Result<string[] | undefined>> {
  if (subject === undefined) return ok(known === undefined ? undefined : [known]);
  const name = gateName({ tenant, zones: [zone] }, [zone]);
  const ask = async () =>
    Promise.all([
      env.GATE.getByName(name).commitmentOf(subject),
      ...(env.SPARE ? [env.SPARE.getByName(name).commitmentOf(subject)] : []),
    ]);
  const answered = await within(ask(), limits.auditReadMs.value, surroundings).catch(() => undefined);
  if (answered === late || answered === undefined)
    return no(refuse('audit_unreachable', undefined, 'the gate does not answer'));
  return ok([...new Set([...answered, ...(known === undefined ? [] : [known])])]);
}

/** Who asks, as the log will have it. */
export async function askerIn(zone: string, claims: Claims, context: RequestContext): Promise<Result<object>> {
  const { subject } = claims;
  const found = await commitmentsIn(zone, { subject }, claims, context);
  if (!found.ok) return found;
  const [by] = found.value ?? [];
  return ok({ request: context.id, ...(by !== undefined && { by }) });
}
