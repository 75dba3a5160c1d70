import type { Refusal } from '../../shared/refusal.ts';
import type { Result } from '../../shared/result.ts';
import type { Final } from '../../shared/speech/transcript.ts';
import type { StreamFormat } from '../../shared/stream/format.ts';
import type { LinkEvent, StreamOptions } from '../../shared/stream/link.ts';

/** A client's request for a session. */
export interface LiveRequest {
  /** Absent or undefined for the default. */
  readonly model?: string | undefined;
  readonly language?: string | undefined;
  /** Tags of a list: the language is one of them. */
  readonly languages?: readonly string[] | undefined;
  readonly format: StreamFormat;
  readonly options: StreamOptions;
  /** Resume token of `edge/stream/resume-token.ts`. */
  readonly resume?: string;
  /** With `resume`: index of the first segment that the client lacks. */
  readonly next?: number;
}

/** The part of a request that decides whether an agent can serve it. */
export type LiveRoute = Pick<LiveRequest, 'model' | 'language' | 'languages'>;

/** A message to the client. */
export type ClientFrame = string | Uint8Array;

export type ClientCommand =
  /** Starts the session: format and model are known. */
  | { readonly type: 'start'; readonly request: LiveRequest }
  /** One message or packet. It follows the audio before it, or has a `position` and may repeat audio. */
  | { readonly type: 'audio'; readonly audio: Uint8Array; readonly position?: number }
  | { readonly type: 'options'; readonly options: StreamOptions }
  /** Transcribes the audio so far; `finalized` with the id answers. */
  | { readonly type: 'finalize'; readonly id: number }
  /** Discards speech since the last segment; `cleared` with the id answers. */
  | { readonly type: 'clear'; readonly id: number }
  /** Keeps the session from being idle. `seen`: number of messages that the client received on this socket. */
  | { readonly type: 'alive'; readonly seen?: number }
  /** Ends the input: the session sends every event and closes. */
  | { readonly type: 'end' }
  /** Announces a route. The session answers with `accepted`, or with `rejectRoute` when no agent serves the route. */
  | { readonly type: 'route'; readonly route: LiveRoute; readonly accepted: readonly ClientFrame[] }
  | { readonly type: 'reply'; readonly frames: readonly ClientFrame[] }
  | { readonly type: 'close'; readonly refusal: Refusal };

type AgentEvent = 'ready' | 'speech_started' | 'speech_ended' | 'interim' | 'segment' | 'utterance_end';

/**
 * Events of a session: those of its agents, each once and in order over every move to another agent, and the edge's own.
 * Times are seconds from the first sample.
 */
export type SessionEvent =
  /** `ready` comes once for each socket; where the socket resumes a session, `resumed` comes first. */
  | Extract<LinkEvent, { type: AgentEvent | 'finalized' | 'cleared' }>
  /** The language that an agent detected, once, and the model that serves it. */
  | { readonly type: 'language'; readonly language: string; readonly confidence: number; readonly model: string }
  /** Positioned audio that the full buffer did not take. The client sends it again from `position`. */
  | { readonly type: 'overflow'; readonly position: number; readonly bytes: number; readonly seconds: number }
  /** Another agent goes on from the last checkpoint; nothing is missing. `revision`: where it is another one. */
  | { readonly type: 'moved'; readonly agent: string; readonly revision?: string }
  /** The socket resumes a session: audio is expected from `position`, which is `time`. */
  | { readonly type: 'resumed'; readonly position: number; readonly time: number }
  /** Only with `acknowledges`: the holder of the token may discard audio before `position`. */
  | { readonly type: 'ack'; readonly position: number; readonly resume: string }
  /** The session reaches its longest duration in so many seconds. */
  | { readonly type: 'ending'; readonly seconds: number };

/**
 * A pure protocol adapter between one socket of a client and its session: no I/O, no timers, no clock of its own. Each
 * socket has a new one; after its `start` a resuming one gets `resumed` and then the events that the client missed. An
 * error that it throws is a bug: the client gets `internal` and the session ends.
 */
export interface LiveProtocol {
  readonly name: LiveProtocolName;
  /** Sessions wait for a disconnected client, which needs a resume token. */
  readonly resumes: boolean;
  /** The protocol has no message that ends a session: clients close the socket after the last word. */
  readonly endsByClosing?: boolean;
  /** Longest silence of the client, ms; `STREAM_IDLE_MS` if absent. */
  readonly idleMs?: number;
  /** Longest time without a `start`, ms; `STREAM_UNSTARTED_MS` if absent. */
  readonly unstartedMs?: number;
  /** Clients acknowledge messages and audio, so the session sends `ack`. */
  readonly acknowledges?: boolean;
  /** First frames. `expires`: latest end of the session, epoch ms. */
  open(facts: { id: string; request: string; now: number; expires: number }): readonly ClientFrame[];
  /** Returns the route as far as it is known before the session starts. */
  route?(): LiveRoute;
  /** Renders the refusal of a route that no agent serves. The session stays open without it. */
  rejectRoute?(refusal: Refusal, now: number): readonly ClientFrame[];
  /** Returns commands of the address alone, once after `open`: `start` where nothing else is needed. */
  begin?(now: number): readonly ClientCommand[];
  /**
   * Parses a message of the client. Bad input becomes a `reply`, and the session stays open, or `close`. The commands may
   * refer to the bytes of the message until they are executed.
   */
  receive(message: string | Uint8Array, now: number): readonly ClientCommand[];
  render(event: SessionEvent, now: number): readonly ClientFrame[];
  /** Renders that the client has every word before `time`, seconds of the session. */
  commit?(time: number, now: number): readonly ClientFrame[];
  /** Returns last frames, close code and a reason of at most 123 bytes. `request` names a socket that was never opened. */
  close(end: Outcome, now: number, request?: string): { frames: readonly ClientFrame[]; code: number; reason: string };
}

/** A normal end, or a refusal: also of a session that reached its longest duration, after all its events. */
export type Outcome = { readonly final: Final } | { readonly refusal: Refusal };

export type LiveProtocolName = 'openai-realtime' | 'deepgram-listen' | 'auricle-stream';

/** Makes an adapter from address and headers of an upgrade, without credentials. */
export type LiveProtocolFactory = (url: URL, headers: Headers) => Result<LiveProtocol>;
