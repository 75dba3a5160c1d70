import { Registry } from 'prom-client';
import { type Clock, systemClock } from '../../infra/pool/agent/stream/clock.ts';
import { createSequenceEnds } from '../../infra/pool/agent/stream/ends.ts';
import { createStreamMetrics } from '../../infra/pool/agent/stream/metrics.ts';
import type { LiveParts } from '../../infra/pool/agent/stream/parts.ts';
import { createSequenceIds } from '../../infra/pool/agent/stream/sequence-ids.ts';
import { openSession, type Session } from '../../infra/pool/agent/stream/session.ts';
import { createTracks } from '../../infra/pool/agent/stream/tracks.ts';
import type { Refusal } from '../../shared/refusal.ts';
import type { StreamFormat } from '../../shared/stream/format.ts';
import type { Checkpoint, LinkControl, LinkEvent, StreamOptions } from '../../shared/stream/link.ts';
import { liveModel } from '../infra/agent/stream/start-stream.ts';
import { type SequenceEngine, shape } from './sequence-engine.ts';
import { openControl } from './stream-link.ts';

/** Sequences of the double that are sent again at once. */
export const REBUILDS = 8;

export interface FakeParts {
  readonly live: LiveParts;
  readonly registry: Registry;
}

/** Returns the shared parts of an agent's streams, around an engine double. */
export function makeLiveParts(
  { engine }: Pick<SequenceEngine, 'engine'>,
  clock: Clock = systemClock,
  slots = 64,
): FakeParts {
  const registry = new Registry();
  const tracks = createTracks({ engine, slots, capacity: 1_000, rebuilds: REBUILDS, clock });
  return {
    registry,
    live: {
      clock,
      tracks,
      ends: createSequenceEnds(engine, clock),
      metrics: createStreamMetrics(registry, { open: () => 0, tracks }),
      newId: createSequenceIds(0.5),
    },
  };
}

/** Events of a session, in order; adjacent audio is merged. */
export type Happening =
  | { readonly audio: Uint8Array }
  | { readonly finalize: number }
  | { readonly clear: number }
  | { readonly options: StreamOptions };

export interface FakeSession {
  readonly events: LinkEvent[];
  readonly refusals: Refusal[];
  readonly session: Session;
  readonly cancel: () => void;
  play(happening: Happening): Promise<void>;
  end(): Promise<LinkEvent[]>;
}

export const optionsOf = (over: Partial<StreamOptions> = {}): StreamOptions => ({
  interim: false,
  endpointingMs: 600,
  ...over,
});

export interface SessionSetup {
  readonly live: LiveParts;
  readonly format?: StreamFormat;
  readonly options?: StreamOptions;
  readonly from?: Checkpoint;
  readonly class?: 'realtime' | 'batch';
  /** Reports whether the edge leaves messages unread. */
  readonly congested?: () => boolean;
  /** The agent detects the language, by the model `language-id` of English and Spanish. */
  readonly detect?: boolean;
  /** Languages among which it is. */
  readonly languages?: string[] | undefined;
  /** Name of the live half of its model. */
  readonly liveModel?: string;
}

/** A session without a socket: what it is told, and what it says. */
export async function startSession(setup: SessionSetup): Promise<FakeSession> {
  const { live, format, options = optionsOf(), from, detect, languages } = setup;
  const events: LinkEvent[] = [];
  const refusals: Refusal[] = [];
  const cancel = new AbortController();
  const opened = await openSession(
    {
      live,
      agent: 'agent-1',
      ticket: { class: setup.class ?? 'realtime', model: 'test-en' },
      model: { ...liveModel(), live: { ...shape, model: setup.liveModel ?? 'test-en-stream' } },
      link: {
        send: (event) => events.push(event),
        congested: setup.congested ?? (() => false),
        flowing: async () => {},
      },
      signal: cancel.signal,
      onRefusal: (refusal) => refusals.push(refusal),
      onUtterance: () => {},
      ...(detect && { detector: { model: 'language-id', languages: ['en', 'es'] } }),
    },
    openControl({
      options,
      ...(format && { format }),
      ...(from && { from }),
      ...(detect && { detect }),
      ...(languages && { languages }),
    }),
  );
  if (!opened.ok) throw new Error(`${opened.refusal.reason}: ${opened.refusal.detail}`);
  const session = opened.value;
  let position = from?.position ?? 0;

  function controlOf(happening: Exclude<Happening, { audio: Uint8Array }>): LinkControl {
    if ('finalize' in happening) return { type: 'finalize', id: happening.finalize, position };
    if ('clear' in happening) return { type: 'clear', id: happening.clear, position };
    return { type: 'options', options: happening.options };
  }

  return {
    events,
    refusals,
    session,
    cancel() {
      cancel.abort();
      session.free();
    },
    async play(happening) {
      const isAudio = 'audio' in happening;
      const taken = await session.take(
        isAudio
          ? { kind: 'audio', position, audio: happening.audio }
          : { kind: 'control', control: controlOf(happening) },
      );
      if (!taken.ok) throw new Error(`${taken.refusal.reason}: ${taken.refusal.detail}`);
      if (isAudio) position += happening.audio.length;
    },
    async end() {
      await session.end();
      session.free();
      return events;
    },
  };
}

/** Plays everything that comes at or behind the checkpoint, as an edge does that replays its ring. */
export async function playFrom(
  session: FakeSession,
  script: readonly Happening[],
  from?: Pick<Checkpoint, 'position'>,
): Promise<LinkEvent[]> {
  const begin = from?.position ?? 0;
  let position = 0;
  for (const happening of script) {
    if ('audio' in happening) {
      const rest = happening.audio.subarray(Math.max(0, Math.min(happening.audio.length, begin - position)));
      position += happening.audio.length;
      if (rest.length > 0) await session.play({ audio: rest });
      continue;
    }
    if (position >= begin) await session.play(happening);
  }
  return session.end();
}

export const segmentsIn = (events: readonly LinkEvent[]) => events.filter((event) => event.type === 'segment');
export const checkpointsIn = (events: readonly LinkEvent[]): Checkpoint[] =>
  events.flatMap((event) => (event.type === 'checkpoint' ? [event] : [])).map(({ type: _, ...rest }) => rest);
