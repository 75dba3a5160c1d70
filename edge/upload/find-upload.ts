import type { z } from 'zod';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { isUploadId } from '../../shared/upload/paths.ts';
import type { RequestContext } from '../context.ts';
import { askBackOffice, type Question } from './back-office.ts';
import { uploadZones } from './place.ts';

export interface Found<T> {
  readonly value: T | undefined;
  /** Whose functions know it. */
  readonly zone: string;
}

/**
 * Asks about one upload of a tenant. An id does not say where it lies, so the functions of each of the tenant's zones
 * are asked, those with one address once, until one knows it.
 */
export async function askAboutUpload<T extends z.ZodType>(
  id: string,
  question: Omit<Question, 'zone' | 'path'> & { readonly below?: string },
  schema: T,
  claims: Claims,
  context: RequestContext,
): Promise<Result<Found<z.infer<T>>>> {
  const { below = '', ...rest } = question;
  if (context.settings.backOffices.size === 0) return no(refuse('uploads_closed'));
  if (!isUploadId(id)) return no(refuse('upload_unknown'));
  let refusal: Refusal = refuse('upload_unknown');
  for (const zone of distinct(uploadZones(claims, context), context)) {
    const path = `/uploads/${claims.tenant}/${id}${below}`;
    const answer = await askBackOffice({ ...rest, zone, path }, schema, claims.tenant, context);
    if (answer.ok) return ok({ value: answer.value, zone });
    // A zone that does not answer may be the one that knows it: "unknown" would be a lie.
    if (answer.refusal.reason !== 'upload_unknown') refusal = answer.refusal;
  }
  return no(refusal);
}

/** One zone for each address. */
export function distinct(zones: readonly string[], { settings }: RequestContext): string[] {
  const seen = new Set<string>();
  return zones.filter((zone) => {
    const office = settings.backOffices.get(zone) ?? '';
    return !seen.has(office) && seen.add(office);
  });
}
