import type { AeadFactory } from './aead.ts';
import { type Opener, openerFrom, type PackingSealer, SEAL_FRAMES_MAX, sealerFrom } from './records.ts';
import type { SealSetup } from './setup.ts';
import { decodeHeader, type FrameKey, frameKey } from './sframe.ts';
import { type SuiteId, suites } from './suites.ts';

/**
 * Requests of one sealed session: with SEAL_FRAMES_MAX each, counters stay exact numbers, and GCM far inside
 * its limits.
 */
export const SESSION_REQUESTS_MAX = 2 ** 24;

/**
 * One set-up that serves many requests with the same two keys. Each request has a number and, in both directions, a
 * range of counters of its own: `number` × `SEAL_FRAMES_MAX` and on. PROTOCOL.md §7 says why that is as good as keys
 * of its own.
 */
export interface SessionKeys {
  readonly suite: SuiteId;
  readonly request: FrameKey;
  readonly answer: FrameKey;
}

/** `ticket`: the compact JWS that was signed for the set-up; every byte of it is in the keys. */
export async function openSealedSession(setup: SealSetup, ticket: string, aead?: AeadFactory): Promise<SessionKeys> {
  const { suite } = setup;
  const keys = await setup.laneKeysFor(ticket);
  const [request, answer] = await Promise.all([
    frameKey(keys.request, suites[suite], 0n, aead),
    frameKey(keys.answer, suites[suite], 0n, aead),
  ]);
  return { suite, request, answer };
}

/** Numbers of requests: from 1 on, never used twice by the sealer, never answered twice by the agent. */
const firstOf = (number: number): number => number * SEAL_FRAMES_MAX;

export const isNumber = (number: number): boolean =>
  Number.isInteger(number) && number >= 1 && number <= SESSION_REQUESTS_MAX;

/** The caller's side: seals the request, opens the answer. The first message of a request says what it is. */
export const edgeCounters = (lane: SessionKeys, number: number): { sealer: PackingSealer; opener: Opener } => ({
  sealer: sealerFrom(lane.request, firstOf(number), 0),
  opener: openerFrom(lane.answer, suites[lane.suite], { first: firstOf(number), packs: true }),
});

/** The agent's side: opens the request, seals the answer. */
export const agentCounters = (lane: SessionKeys, number: number): { sealer: PackingSealer; opener: Opener } => ({
  sealer: sealerFrom(lane.answer, firstOf(number), 0),
  opener: openerFrom(lane.request, suites[lane.suite], { first: firstOf(number), packs: true }),
});

/** Bytes of a body that are enough to tell its number; every record is longer. */
export const NUMBER_BYTES = 18;

/** Returns the unauthenticated request number of a body; `undefined` when no request of a session begins so. */
export function numberAt(start: Uint8Array): number | undefined {
  const length = 1 << ((start[0] ?? 0) >> 6);
  const header = decodeHeader(start.subarray(length + 1));
  const number = Number(header?.counter ?? 0) / SEAL_FRAMES_MAX;
  return header?.kid === 0n && isNumber(number) ? number : undefined;
}
