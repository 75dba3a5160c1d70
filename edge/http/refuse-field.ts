import type { z } from 'zod';
import { type Refusal, refuse } from '../../shared/refusal.ts';

/** Returns the refusal of `json` by the first rule that it breaks: `field_missing` for an absent member. */
export function refuseField({ issues: [issue] }: z.ZodError, json: unknown): Refusal {
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys : [];
  const path = [...(issue?.path ?? []), ...unknown.slice(0, 1)].map(String).join('.') || 'body';
  const field = path.slice(0, 100);
  if (issue && isAbsent(json, issue.path)) return refuse('field_missing', { field });
  const rule = unknown.length > 0 ? 'is not known' : (issue?.message ?? 'is not valid').toLowerCase();
  return refuse('field_invalid', { field, rule });
}

/** Reports whether `json` has no value at a path of one key or more. */
export function isAbsent(json: unknown, path: readonly PropertyKey[]): boolean {
  const value = path.reduce<unknown>((at, key) => (Object.hasOwn(Object(at), key) ? Object(at)[key] : undefined), json);
  return path.length > 0 && value === undefined;
}
