import type { z } from 'zod';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, ownerOf } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { callFunctionsRoute, type Question } from '../functions/call-functions.ts';
import type { JobKind, JobRow } from './kinds.ts';
import { uploadZones } from './place-work.ts';

export interface FoundJob<T> {
  readonly value: T | undefined;
  /** Zone of the functions that store the job. */
  readonly zone: string;
}

interface JobCall<Row extends JobRow> extends Omit<Question, 'zone' | 'path' | 'owner' | 'zones'> {
  readonly kind: JobKind<Row>;
  readonly id: string;
  /** Path below the job's, with the slash. */
  readonly below?: string;
}

/**
 * Calls the functions that store a job of the caller. Its id does not name its zone: the functions of each of the
 * caller's zones are called in turn, each address once, until one knows it.
 */
export async function callJob<Row extends JobRow, T extends z.ZodType>(
  { kind, id, below = '', ...call }: JobCall<Row>,
  schema: T,
  claims: Claims,
  context: RequestContext,
): Promise<Result<FoundJob<z.infer<T>>>> {
  if (context.settings.functionsUrls.size === 0) return no(refuse('uploads_closed'));
  if (!kind.isId(id)) return no(refuse(kind.unknown));
  let refusal: Refusal = refuse(kind.unknown);
  const zones = uploadZones(claims, context);
  for (const zone of distinct(zones, context)) {
    const path = `${kind.root}/${claims.tenant}/${id}${below}`;
    const answer = await callFunctionsRoute(
      { ...call, zone, path, zones, owner: ownerOf(claims) },
      schema,
      claims.tenant,
      context,
    );
    if (answer.ok) return ok({ value: answer.value, zone });
    // A zone that does not answer may know it, so "unknown" would be wrong.
    if (answer.refusal.reason !== kind.unknown) refusal = answer.refusal;
  }
  return no(refusal);
}

/** Returns one zone for each address of functions. */
export function distinct(zones: readonly string[], { settings }: RequestContext): string[] {
  const seen = new Set<string>();
  return zones.filter((zone) => {
    const baseUrl = settings.functionsUrls.get(zone) ?? '';
    return !seen.has(baseUrl) && seen.add(baseUrl);
  });
}
