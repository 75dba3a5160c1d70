// Stages of a revision's life, and the moves between them.
import { z } from 'zod';

/**
 * `develop-verify`: registered, judged on recordings only. `grey`: gets a copy of traffic, its answers are
 * discarded. `canary`: serves a share of the sessions. `full`: an alias may name it. `retired`: serves
 * nothing.
 */
export const stages = ['develop-verify', 'grey', 'canary', 'full', 'retired'] as const;
export const stage = z.enum(stages);
export type Stage = z.infer<typeof stage>;

/** Shares of the sessions that a canary serves, in order. */
export const canaryShares = [0.01, 0.05, 0.1, 0.25, 0.5] as const;
export type CanaryShare = (typeof canaryShares)[number];
export const canaryShare = z.literal([...canaryShares]);

/** A stage, and in the stage `canary` the share that goes with it. */
export const standing = z
  .object({ stage, share: canaryShare.optional() })
  .refine((value) => (value.stage === 'canary') === (value.share !== undefined), 'a share goes with canary');
export type Standing = z.infer<typeof standing>;

export const FIRST: Standing = { stage: 'develop-verify' };

/**
 * `advance`: to the next stage, through its gate. `step-up`: to the next share. `withdraw`: back, without
 * evidence. `retire`: out. `restore`: from `retired` to the first stage.
 */
export type Move = 'advance' | 'step-up' | 'withdraw' | 'retire' | 'restore';

/** Classifies a move; `undefined` when it is not allowed. */
export function moveOf(from: Standing, to: Standing): Move | undefined {
  if (to.stage === 'retired') return from.stage === 'retired' ? undefined : 'retire';
  if (from.stage === 'retired') return to.stage === 'develop-verify' ? 'restore' : undefined;
  if (from.stage === 'canary' && to.stage === 'canary') {
    const step = shareAt(to) - shareAt(from);
    if (step === 1) return 'step-up';
    return step < 0 ? 'withdraw' : undefined;
  }
  if (from.stage === 'develop-verify' && to.stage === 'grey') return 'advance';
  if (from.stage === 'grey' && to.stage === 'canary') return shareAt(to) === 0 ? 'advance' : undefined;
  if (from.stage === 'canary' && to.stage === 'full') {
    return shareAt(from) === canaryShares.length - 1 ? 'advance' : undefined;
  }
  const back = stages.indexOf(to.stage) < stages.indexOf(from.stage);
  // A revision in `full` goes back to the first stage or not at all: its evidence was for another fleet.
  return back && (from.stage === 'grey' || from.stage === 'canary' || to.stage === 'develop-verify')
    ? 'withdraw'
    : undefined;
}

const shareAt = ({ share }: Standing): number => canaryShares.indexOf(share as CanaryShare);

export const isSame = (one: Standing, other: Standing): boolean =>
  one.stage === other.stage && one.share === other.share;

/** Formats a standing for people: `canary 5 %`. */
export const showStanding = ({ stage: name, share }: Standing): string =>
  share === undefined ? name : `${name} ${share * 100} %`;
