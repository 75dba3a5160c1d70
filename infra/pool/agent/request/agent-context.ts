import { clampRetry, type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no } from '../../../../shared/result.ts';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';
import type { Tracer } from '../../../../shared/trace/span.ts';
import type { Degrader } from '../degrade/degrader.ts';
import type { ResultCache } from '../degrade/result-cache.ts';
import type { Calls } from '../engine/calls/calls.ts';
import type { Dispatcher } from '../engine/dispatch.ts';
import { waitsTooLong } from '../engine/expected-wait.ts';
import type { Keys } from '../identity/keys.ts';
import type { LiveBook } from '../live-counts/book.ts';
import type { LeasedModel, ServedModel } from '../models/served-model.ts';
import type { ZoneFiles } from '../storage/files.ts';
import { bugFields, type Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { countWork, type Entry, type WorkCounter } from './in-flight.ts';
import type { ReadSession } from './read-session.ts';
import { createRequestSlots, type RequestSlots } from './request-slots.ts';
import type { createReplayCache, createTicketReader } from './ticket.ts';

/** Speed of the engine. */
export interface Pace {
  /** Mean milliseconds that an utterance holds an engine slot; 0 when unknown. */
  readonly serviceMs: number;
  readonly slots: number;
  /** Slots that classes more urgent than this one held of late, on average. */
  readonly urgentSlots: (name: RequestClass) => number;
}

/** Dependencies of every request. */
export interface AgentContextOptions {
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
  readonly degrader: Degrader;
  /** Results of recordings, empty at level 0. */
  readonly results: ResultCache;
  /** Returns a revision of a model while the agent serves it; without a digest the one of the part `full`. */
  readonly model: (name: string, revision?: string) => ServedModel | undefined;
  /** Returns the model that detects languages, if the agent serves one. */
  readonly detector: () => ServedModel | undefined;
  /** Leases a model for a request, after its load if need be; `undefined` when it is not loaded in time. */
  readonly lease: (model: ServedModel, signal: AbortSignal) => Promise<LeasedModel | undefined>;
  readonly keepaliveMs: number;
  readonly pace: () => Pace;
  /** Live streams that may be open at once. */
  readonly streamsMax: number;
  /** Reports whether the engine answers: while it does not, no stream is admitted. */
  readonly engineReady: () => boolean;
  /** Outcomes of recordings, by revision. */
  readonly book: Pick<LiveBook, 'ended'>;
  /** Receives spans; absent, none are made. */
  readonly tracer?: Tracer | undefined;
  /** Logs each request. */
  readonly logRequests: boolean;
  /** Storage and keys for files of the zone; absent when the agent has no key for them. */
  readonly files?: ZoneFiles | undefined;
}

export interface AgentContext extends AgentContextOptions {
  /** Counts a short request in. */
  enter(): Entry;
  /** Takes a slot for a short request. Refuses with `pool_busy`, always while the agent drains. */
  takeSlot: RequestSlots['enter'];
  /** Classes in which the agent takes no request now. */
  full(): RequestClass[];
  /** Adds to a `pool_busy` an estimate of when a slot is free. */
  withRetry(refusal: Refusal, name: RequestClass): Refusal;
  /** Counts and logs the end of a request; `request` is its id, where it is known. */
  report(refusal: Refusal, request?: string): void;
  bug(error: unknown, request?: string): void;
  /** Short requests being worked on. */
  busy(): number;
  /** Counts live streams. */
  readonly streams: Pick<WorkCounter, 'enter' | 'full' | 'size'>;
  draining(): boolean;
  drain(): void;
  /** Resolves when all work has ended. Aborts it after `milliseconds`. */
  empty(milliseconds: number): Promise<void>;
}

/** Estimates the seconds until a slot is free behind `ahead` requests. */
function secondsUntilFree(ahead: number, { serviceMs, slots }: Pick<Pace, 'serviceMs' | 'slots'>): number {
  return clampRetry((Math.max(1, ahead) * serviceMs) / slots);
}

/** Returns the refusal of a request that would wait too long for the engine behind what is queued. */
function refusalOfWait({ dispatcher, pace }: AgentContextOptions, next: { class: RequestClass; tenant: string }) {
  const { serviceMs, slots, urgentSlots } = pace();
  const engine = { ahead: dispatcher.ahead(next), busy: dispatcher.busy(), slots, serviceMs };
  return waitsTooLong(next.class, { ...engine, urgentSlots: urgentSlots(next.class) })
    ? refuse('pool_busy', undefined, `class ${next.class} would wait too long`)
    : undefined;
}

/** Opens the context of requests and counts them. */
export function openAdmission(parts: AgentContextOptions): AgentContext {
  const short = countWork(Number.POSITIVE_INFINITY);
  const slots = createRequestSlots(parts.now);
  const streams = countWork(parts.streamsMax);
  let draining = false;
  return {
    ...parts,
    enter: short.enter,
    takeSlot(request) {
      if (draining) return no(refuse('pool_busy', undefined, 'agent stops'));
      const tooLong = refusalOfWait(parts, request);
      const taken = tooLong ? no(tooLong) : slots.enter(request);
      if (!taken.ok) parts.degrader.note(request.class, 'refused');
      return taken;
    },
    full() {
      const full = slots.full();
      // A tenant without waiting work has the shortest wait of its class.
      return classes.filter((name) => full.includes(name) || refusalOfWait(parts, { class: name, tenant: '' }));
    },
    withRetry(refusal, name) {
      if (refusal.reason !== 'pool_busy') return refusal;
      return { retryAfter: secondsUntilFree(slots.ahead(name), parts.pace()), ...refusal };
    },
    report({ reason, detail }, request) {
      parts.metrics.request(reason);
      const why = { reason, ...(detail !== undefined && { detail }) };
      parts.log('refused', { ...(request !== undefined && { request }), ...why });
    },
    bug(error, request) {
      parts.metrics.request('internal');
      parts.log('bug', { ...(request !== undefined && { request }), ...bugFields(error) });
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
