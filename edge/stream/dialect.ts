import type { Refusal } from '../../shared/refusal.ts';
import type { Result } from '../../shared/result.ts';
import type { Final } from '../../shared/speech/transcript.ts';
import type { StreamFormat } from '../../shared/stream/format.ts';
import type { LinkEvent, StreamOptions } from '../../shared/stream/link.ts';

/** A client's request for a session. */
export interface LiveRequest {
  readonly model?: string;
  readonly language?: string;
  readonly format: StreamFormat;
  readonly options: StreamOptions;
  /** A token of `edge/stream/resume-token.ts`: the client goes on with a session. */
  readonly resume?: string;
  /** With `resume`: index of the first segment the client does not have. */
  readonly next?: number;
}

/** The part of a request that decides whether an agent can serve it. */
export type LiveWish = Pick<LiveRequest, 'model' | 'language'>;

/** A message to the client. */
export type Outgoing = string | Uint8Array;

export type ClientStep =
  /** Format and model are known: the session may dial now (Deepgram: at once, from the URL; OpenAI: at the first append). */
  | { readonly type: 'start'; readonly request: LiveRequest }
  /** One message or packet. Without `position` it follows what came before; with one it may repeat what is known. */
  | { readonly type: 'audio'; readonly audio: Uint8Array; readonly position?: number }
  | { readonly type: 'options'; readonly options: StreamOptions }
  /** Everything said so far is to be transcribed now; `finalized` with the id answers. */
  | { readonly type: 'finalize'; readonly id: number }
  /** Discards speech since the last segment; `cleared` with the id answers. */
  | { readonly type: 'clear'; readonly id: number }
  /** It is still there: keeps the session from being idle. `seen`: so many messages came to it on this connection. */
  | { readonly type: 'alive'; readonly seen?: number }
  /** Half-close: finish, say everything, then close. */
  | { readonly type: 'end' }
  /** Announces a request: answered by `granted`, or by `warn` of the dialect when no agent serves it. */
  | { readonly type: 'wish'; readonly wish: LiveWish; readonly granted: readonly Outgoing[] }
  | { readonly type: 'reply'; readonly frames: readonly Outgoing[] }
  | { readonly type: 'close'; readonly refusal: Refusal };

type Said = 'ready' | 'speech_started' | 'speech_ended' | 'interim' | 'segment' | 'utterance_end';

/**
 * Events of a session: those of its agents, each once and in order over every move to another agent, and the edge's own. Times are seconds from the first sample.
 */
export type SessionEvent =
  /** `ready` comes once for each connection; where it resumes, `resumed` comes first, at once. */
  | Extract<LinkEvent, { type: Said | 'finalized' | 'cleared' }>
  /** Positioned audio that the full buffer did not take. The client sends it again from `position`. */
  | { readonly type: 'overflow'; readonly position: number; readonly bytes: number; readonly seconds: number }
  /** Another agent goes on from the last checkpoint; nothing is missing. */
  | { readonly type: 'moved'; readonly agent: string }
  /** This connection goes on with a session: audio is expected from `position`, which is `time`. */
  | { readonly type: 'resumed'; readonly position: number; readonly time: number }
  /** Only with `acknowledges`: the holder of the token may discard audio before `position`. */
  | { readonly type: 'ack'; readonly position: number; readonly resume: string }
  /** The session will end so many seconds from now, since it is as long as it may be. */
  | { readonly type: 'ending'; readonly seconds: number };

/**
 * A pure translator between one connection of a client and its session. No I/O, no timers, no clock of its own. The
 * session makes one for each connection: when a dropped client comes back there is a new one, which hears `resumed`
 * after its `start`, and then the events that happened meanwhile; the old one is forgotten.
 * An error that it throws is a bug: the client gets `internal` and the session ends.
 */
export interface LiveDialect {
  readonly name: DialectName;
  /** Whether a session waits for a client whose connection broke: only for one that was given a resume token. */
  readonly resumes: boolean;
  /** Whether the protocol has no message that ends a session: its clients close the connection after the last word. */
  readonly endsByClosing?: boolean;
  /** After so many ms without a message the client is gone; `limits.streamIdleMs` unless told. */
  readonly idleMs?: number;
  /** After so many ms without a `start` the client is sent away; `limits.streamUnstartedMs` unless told. */
  readonly unstartedMs?: number;
  /** Whether the client wants `ack`. */
  readonly acknowledges?: boolean;
  /** First frames, before anything is heard. `now`: ms since 1970; `expires`: when the session ends at the latest, as well. */
  open(session: { id: string; request: string; now: number; expires: number }): readonly Outgoing[];
  /** Returns the request in the address, before `open`. The edge opens no session that no agent can serve. */
  wish?(): LiveWish;
  /** Frames that tell of a request that no agent serves. The session stays open and ignores the request. */
  warn?(refusal: Refusal, now: number): readonly Outgoing[];
  /** Steps that the address alone leads to, read once after `open`: `start`, where nothing else is needed. */
  begin?(now: number): readonly ClientStep[];
  /**
   * A message of the client. Bad input is a reply in the dialect, and the session stays open, or `close`. Bytes of it
   * may be read until what this gives was taken: what has to last longer is copied.
   */
  hear(message: string | Uint8Array, now: number): readonly ClientStep[];
  say(event: SessionEvent, now: number): readonly Outgoing[];
  /** Nothing more will be said of what came before `time`, in seconds of the session. */
  settle?(time: number, now: number): readonly Outgoing[];
  /**
   * The connection ends: last frames, close code, and a reason of at most 123 bytes. `request` names a connection that was
   * never opened.
   */
  close(end: Ending, now: number, request?: string): { frames: readonly Outgoing[]; code: number; reason: string };
}

/** A stream that ended as it should, or a refusal: also of a stream that is as long as it may be, after all was said. */
export type Ending = { readonly final: Final } | { readonly refusal: Refusal };

export type DialectName = 'openai-realtime' | 'deepgram-listen' | 'auricle-stream';

/** From the address and headers of the upgrade, without credentials. A refusal is told in the dialect's own shape. */
export type DialectFactory = (url: URL, headers: Headers) => Result<LiveDialect>;
