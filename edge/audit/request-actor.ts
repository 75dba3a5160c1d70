// The subjects of erasures, holds and searches. A caller names a subject as its tokens do; the log of a zone has the
// commitment of the tenant's gate in that zone.
import { z } from 'zod';
import { commitment } from '../../shared/audit/privacy.ts';
import { ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { commitmentOfReader } from '../ledger/commitment.ts';
import { zoneOf } from './exports.ts';

export const requestActor = {
  subject: z.string().min(1).max(256).optional().describe('The subject, as `sub` of its tokens'),
  commitment: commitment.optional().describe('The commitment of the subject in the log, as a disclosure shows it'),
};

export interface RequestActor {
  readonly subject?: string | undefined;
  readonly commitment?: string | undefined;
}

/** The requested zone, or all zones that may hold events of the tenant. */
export function zonesOf(claims: Claims, requested: string | undefined, context: RequestContext): Result<string[]> {
  const one = zoneOf(claims, requested, context);
  if (!one.ok) return one;
  if (requested !== undefined) return ok([one.value]);
  return ok([...context.settings.auditLogs.keys()].filter((zone) => zoneOf(claims, zone, context).ok));
}

/** The commitments of a named subject; `undefined` when the query names none. */
export async function commitmentsIn(
  zone: string,
  { subject, commitment: known }: RequestActor,
  { tenant }: Pick<Claims, 'tenant'>,
  context: RequestContext,
): Promise<Result<string[] | undefined>> {
  if (subject === undefined) return ok(known === undefined ? undefined : [known]);
  const found = await commitmentOfReader(zone, { tenant, subject }, context);
  if (!found.ok) return found;
  return ok([...new Set([found.value, known])].filter((one) => one !== undefined));
}

/** The caller as the log records it: the request and the commitment of its subject. */
export async function actorCommitment(zone: string, claims: Claims, context: RequestContext): Promise<Result<object>> {
  const found = await commitmentOfReader(zone, claims, context);
  if (!found.ok) return found;
  const by = found.value;
  return ok({ request: context.id, ...(by !== undefined && { by }) });
}
