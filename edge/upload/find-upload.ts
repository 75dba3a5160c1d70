import type { z } from 'zod';
import { isProjectId } from '../../shared/project/id.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, ownerOf } from '../../shared/tenant/claims.ts';
import { isUploadId } from '../../shared/upload/paths.ts';
import type { RequestContext } from '../context.ts';
import { askBackOffice, type Question } from './back-office.ts';
import { uploadZones } from './place.ts';

export interface Found<T> {
  readonly value: T | undefined;
  /** Zone whose functions know it. */
  readonly zone: string;
}

type About = Omit<Question, 'zone' | 'path' | 'owner' | 'zones'> & { readonly below?: string };

/** Kind of a lookup: path, id format, and the refusal of an unknown id. */
interface Kind {
  readonly root: string;
  readonly isId: (id: string) => boolean;
  readonly unknown: 'upload_unknown' | 'project_unknown';
}

const UPLOAD: Kind = { root: '/uploads', isId: isUploadId, unknown: 'upload_unknown' };
const PROJECT: Kind = { root: '/projects', isId: isProjectId, unknown: 'project_unknown' };

/** Looks up one upload of a tenant. */
export const askAboutUpload = <T extends z.ZodType>(
  id: string,
  question: About,
  schema: T,
  claims: Claims,
  context: RequestContext,
): Promise<Result<Found<z.infer<T>>>> => askAbout(UPLOAD, id, question, schema, claims, context);

/** Looks up one text project of a tenant. */
export const askAboutProject = <T extends z.ZodType>(
  id: string,
  question: About,
  schema: T,
  claims: Claims,
  context: RequestContext,
): Promise<Result<Found<z.infer<T>>>> => askAbout(PROJECT, id, question, schema, claims, context);

/**
 * An id does not name its zone: the functions of each of the tenant's zones are called in turn, each address
 * once, until one knows it.
 */
async function askAbout<T extends z.ZodType>(
  { root, isId, unknown }: Kind,
  id: string,
  question: About,
  schema: T,
  claims: Claims,
  context: RequestContext,
): Promise<Result<Found<z.infer<T>>>> {
  const { below = '', ...rest } = question;
  if (context.settings.backOffices.size === 0) return no(refuse('uploads_closed'));
  if (!isId(id)) return no(refuse(unknown));
  let refusal: Refusal = refuse(unknown);
  const zones = uploadZones(claims, context);
  for (const zone of distinct(zones, context)) {
    const path = `${root}/${claims.tenant}/${id}${below}`;
    const asked = { ...rest, zone, path, zones, owner: ownerOf(claims) };
    const answer = await askBackOffice(asked, schema, claims.tenant, context);
    if (answer.ok) return ok({ value: answer.value, zone });
    // A zone that does not answer may know it, so "unknown" would be wrong.
    if (answer.refusal.reason !== unknown) refusal = answer.refusal;
  }
  return no(refusal);
}

/** Returns one zone for each address. */
export function distinct(zones: readonly string[], { settings }: RequestContext): string[] {
  const seen = new Set<string>();
  return zones.filter((zone) => {
    const office = settings.backOffices.get(zone) ?? '';
    return !seen.has(office) && seen.add(office);
  });
}
