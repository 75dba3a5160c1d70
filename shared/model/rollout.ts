// What becomes of a revision that misses what was promised of it: smaller ones are made of it and go through the same gates,
// one for each method at most, and when none is left everything stands still until a person acts.
//
//   (none) ──miss──▶ making ──registered──▶ trying ──full──▶ met
//                      │  ▲                    │
//          cannot be made  └──another method───┘ fails at a gate
//                      └──────none is left─────┴──────▶ stopped        any of them ──a person──▶ resumed ──miss──▶ stopped
import { z } from 'zod';
import { limits } from '../limits.ts';
import { revisionDigest } from './revision.ts';
import { miss } from './sla.ts';

/** In the order in which they are tried: what needs no samples first. */
export const methods = ['dynamic', 'static'] as const;
export const method = z.enum(methods);
export type Method = z.infer<typeof method>;

/** Of what a revision was made, and how. It is in what is signed, like the promise. */
export const made = z.object({
  from: revisionDigest,
  method,
  parameters: z
    .record(z.string().min(1).max(64), z.union([z.string().max(256), z.number(), z.boolean()]))
    .refine((all) => Object.keys(all).length <= limits.modelProperties.value, 'has too many members'),
});
export type Made = z.infer<typeof made>;

const rolloutStates = ['making', 'trying', 'met', 'stopped', 'resumed'] as const;

export const rollout = z.object({
  state: z.enum(rolloutStates),
  since: z.number().int(),
  /** What led to it, for people. */
  reason: z.string(),
  /** What is being made or tried, or was last. */
  method: method.optional(),
  /** What was made, by method; `null` where nothing could be. Whatever stands here is not tried again. */
  tried: z.partialRecord(method, revisionDigest.nullable()),
});
export type Rollout = z.infer<typeof rollout>;

/** What the log says of it (registry.ts). `failed` is who missed: the revision itself, or what was made of it last. */
export const rolloutEntry = {
  type: z.literal('rollout'),
  revision: revisionDigest,
  failed: revisionDigest.optional(),
  state: z.enum(['making', 'stopped']),
  method: method.optional(),
  reason: z.string(),
  misses: z.array(miss),
  statement: z.string(),
  signers: z.array(z.string()),
};

type Known = Readonly<
  Record<string, { readonly made?: Pick<Made, 'from' | 'method'> | undefined; readonly rollout?: Rollout | undefined }>
>;

/** Whose rollout a revision is part of: that of the one it was made for, or its own. */
export function sourceOf(revisions: Known, revision: string): string {
  const from = revisions[revision]?.made;
  return from && revisions[from.from]?.rollout?.tried[from.method] === revision ? from.from : revision;
}

/** Who is waited for. */
export const isAwaited = (revisions: Known, { from, method: how }: Pick<Made, 'from' | 'method'>): boolean => {
  const known = revisions[from]?.rollout;
  return known?.state === 'making' && known.method === how;
};

/** What to try next; `undefined`: nothing is left. What was made of something is not made smaller again. */
export function nextMethod(revisions: Known, source: string): Method | undefined {
  const one = revisions[source];
  if (!one || one.made || one.rollout?.state === 'resumed' || one.rollout?.state === 'stopped') return undefined;
  const before = one.rollout?.method === undefined ? -1 : methods.indexOf(one.rollout.method);
  return methods[before + 1];
}

/** Why a revision does not go forward; `undefined` when it may. */
export function heldBack(revisions: Known, revision: string): string | undefined {
  const source = sourceOf(revisions, revision);
  const known = revisions[source]?.rollout;
  if (!known || known.state === 'resumed') return undefined;
  if (known.state === 'stopped') return `the rollout is stopped: ${known.reason}`;
  if (source === revision) return `it missed what was promised of it: ${known.reason}`;
  return known.method !== undefined && known.tried[known.method] === revision
    ? undefined
    : `another one took its place: ${known.reason}`;
}
