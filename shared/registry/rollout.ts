// States of a revision that misses its promise: a worker derives smaller revisions, one for each method at
// most, which pass the same gates. When no method is left the rollout stops until a person acts.
//
//   (none) ──miss──▶ making ──registered──▶ trying ──full──▶ met
//                      │  ▲                    │
//          cannot be made  └──another method───┘ fails at a gate
//                      └──────none is left─────┴──────▶ stopped
//
//   any of them ──a person──▶ resumed ──miss──▶ stopped
import { z } from 'zod';
import { revisionDigest } from './revision.ts';
import { miss } from './sla.ts';

/** Members of the description of a revision. */
export const MODEL_PROPERTIES_MAX = 32;

/** Methods in the order of trial: the one that needs no samples first. */
export const methods = ['dynamic', 'static'] as const;
export const method = z.enum(methods);
export type Method = z.infer<typeof method>;

/** Source and method of a derived revision. Part of the signed manifest, like the promise. */
export const made = z.object({
  from: revisionDigest,
  method,
  parameters: z
    .record(z.string().min(1).max(64), z.union([z.string().max(256), z.number(), z.boolean()]))
    .refine((all) => Object.keys(all).length <= MODEL_PROPERTIES_MAX, 'has too many members'),
});
export type Derivation = z.infer<typeof made>;

const rolloutStates = ['making', 'trying', 'met', 'stopped', 'resumed'] as const;

export const rollout = z.object({
  state: z.enum(rolloutStates),
  since: z.number().int(),
  /** Cause, for people. */
  reason: z.string(),
  /** Method of the current or last attempt. */
  method: method.optional(),
  /** Derived revisions by method; `null` where none could be made. A listed method is not tried again. */
  tried: z.partialRecord(method, revisionDigest.nullable()),
});
export type Rollout = z.infer<typeof rollout>;

/**
 * Log entry of a rollout (registry.ts). `failed`: the revision that missed, the source or its last
 * derivative.
 */
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
  Record<
    string,
    { readonly made?: Pick<Derivation, 'from' | 'method'> | undefined; readonly rollout?: Rollout | undefined }
  >
>;

/** Returns the source of the rollout that a revision belongs to: the one it was made for, or itself. */
export function sourceOf(revisions: Known, revision: string): string {
  const from = revisions[revision]?.made;
  return from && revisions[from.from]?.rollout?.tried[from.method] === revision ? from.from : revision;
}

/** Reports whether a rollout waits for this derivative. */
export const isAwaited = (revisions: Known, { from, method: how }: Pick<Derivation, 'from' | 'method'>): boolean => {
  const known = revisions[from]?.rollout;
  return known?.state === 'making' && known.method === how;
};

/** Returns the next method; `undefined` when none is left. Derived revisions are not derived from again. */
export function nextMethod(revisions: Known, source: string): Method | undefined {
  const one = revisions[source];
  if (!one || one.made || one.rollout?.state === 'resumed' || one.rollout?.state === 'stopped') return undefined;
  const before = one.rollout?.method === undefined ? -1 : methods.indexOf(one.rollout.method);
  return methods[before + 1];
}

/** Returns the reason that bars a revision from moving forward; `undefined` when it may move. */
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
