import type { ModelDescription } from '../../../shared/pool/description.ts';
import { clampRetry, type Refusal, refuse } from '../../../shared/refusal.ts';
import { no } from '../../../shared/result.ts';
import type { RequestClass } from '../../../shared/tenant/claims.ts';
import type { FileRoom } from './batch/outcome-task.ts';
import type { Dispatcher } from './dispatch.ts';
import type { Keys } from './keys.ts';
import type { Calls } from './kserve/calls.ts';
import type { LiveBook } from './live/book.ts';
import { bugFields, type Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { RecogniserSource } from './recogniser.ts';
import { createRequestSlots, type RequestSlots } from './request-slots.ts';
import { type Entry, openRoom, type Room } from './room.ts';
import type { ReadSession } from './sealed-session.ts';
import type { Recogniser } from './segment.ts';
import type { Speaker } from './speak/speaker.ts';
import type { LiveParts } from './stream/parts.ts';
import type { createReplayCache, createTicketReader } from './ticket.ts';

/** The half of a model that hears live streams. */
export interface LiveModel {
  /** Its name at the engine. */
  readonly model: string;
  /** Samples of a window, and from the begin of one window to that of the next. */
  readonly windowSamples: number;
  readonly hopSamples: number;
}

export interface ServedModel {
  readonly description: ModelDescription;
  /** Absent when the model only computes: it can be asked for tensors and for nothing else. */
  readonly recogniser?: Recogniser;
  /** Files that the recogniser was made of, for stream workers; absent in tests that make their own. */
  readonly source?: RecogniserSource;
  /** Absent when it hears no live streams. `description.live` says whether the engine is ready for them. */
  readonly live?: LiveModel;
  /** What turns text into sound; absent when it is no voice. */
  readonly speaker?: Speaker;
  /** Whether its files are still those that its revision names; absent when it was made of none. */
  readonly unchanged?: () => Promise<boolean>;
}

/** How fast the engine serves. */
export interface Pace {
  /** Mean milliseconds that an utterance holds an engine slot; 0 when unknown. */
  readonly serviceMs: number;
  readonly slots: number;
}

/** What every request needs of the agent. */
export interface DeskParts {
  readonly agent: string;
  readonly now: () => number;
  readonly keys: Keys;
  readonly readTicket: ReturnType<typeof createTicketReader>;
  readonly readSession: ReadSession;
  readonly replays: ReturnType<typeof createReplayCache>;
  readonly dispatcher: Dispatcher;
  readonly calls: Calls;
  readonly metrics: Metrics;
  readonly log: Log;
  /** The model of that name, while the engine serves it. */
  readonly model: (name: string) => ServedModel | undefined;
  readonly keepaliveMs: number;
  readonly pace: () => Pace;
  /** Live streams that may be open at once. */
  readonly streamsMax: number;
  /** Reports whether the engine answers: while it does not, no stream is admitted. */
  readonly engineReady: () => boolean;
  readonly live: Pick<LiveParts, 'metrics'>;
  /** What became of recordings, by revision. */
  readonly book: Pick<LiveBook, 'ended'>;
  /** What opens files of the zone; absent when it has no key for them. */
  readonly files?: FileRoom | undefined;
}

export interface Desk extends DeskParts {
  /** Counts a short request in; `leave` counts it out. `signal` fires when the agent cannot wait for it any longer. */
  enter(): Entry;
  /** Takes a slot for a short request. Refuses with `pool_busy`, always while the agent drains. */
  takeSlot: RequestSlots['enter'];
  /** The refusal with an estimate of when a slot is free, where it is `pool_busy`. */
  withRetry(refusal: Refusal, name: RequestClass): Refusal;
  report(refusal: Refusal): void;
  bug(error: unknown): void;
  /** Short requests being worked on. */
  busy(): number;
  /** The same for live streams. */
  readonly streams: Pick<Room, 'enter' | 'full' | 'size'>;
  draining(): boolean;
  drain(): void;
  /** Resolves once nobody is inside, or after `milliseconds`, when those inside are sent away. */
  empty(milliseconds: number): Promise<void>;
}

/** Estimate of the seconds until a slot is free behind `ahead` requests. */
function secondsUntilFree(ahead: number, { serviceMs, slots }: Pace): number {
  return clampRetry((Math.max(1, ahead) * serviceMs) / slots);
}

/** Where requests come in and are counted. */
export function openDesk(parts: DeskParts): Desk {
  const short = openRoom(Number.POSITIVE_INFINITY);
  const slots = createRequestSlots(parts.now);
  const streams = openRoom(parts.streamsMax);
  let draining = false;
  return {
    ...parts,
    enter: short.enter,
    takeSlot: (request) => (draining ? no(refuse('pool_busy', undefined, 'agent stops')) : slots.enter(request)),
    withRetry(refusal, name) {
      if (refusal.reason !== 'pool_busy') return refusal;
      return { ...refusal, retryAfter: secondsUntilFree(slots.ahead(name), parts.pace()) };
    },
    report({ reason, detail }) {
      parts.metrics.request(reason);
      parts.log('refused', { reason, ...(detail !== undefined && { detail }) });
    },
    bug(error) {
      parts.metrics.request('internal');
      parts.log('bug', bugFields(error));
    },
    busy: short.size,
    streams: { enter: streams.enter, size: streams.size, full: () => draining || streams.full() },
    draining: () => draining,
    drain() {
      if (draining) return;
      draining = true;
      streams.drain();
    },
    async empty(milliseconds) {
      await Promise.all([short.empty(milliseconds), streams.empty(milliseconds)]);
    },
  };
}
