import { z } from 'zod';
import { type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { bytesPerSecond } from '../../shared/stream/format.ts';
import { errorObject } from '../http/openai-stream.ts';
import { STREAM_REQUESTS_MAX, STREAM_VOICE_MS } from './limits.ts';
import type { ClientCommand, ClientFrame, LiveProtocol, LiveRoute, Outcome, SessionEvent } from './live-protocol.ts';
import { Items, type ServerEvent } from './openai-realtime-items.ts';
import {
  changed,
  defaultConfig,
  formatOf,
  LOGPROBS,
  optionsOf,
  type SessionConfig,
  type SessionFacts,
  showSession,
  updateConfig,
} from './openai-realtime-session.ts';
import { readBase64 } from './read-base64.ts';
import { readText } from './read-text.ts';

/** Shortest sound that a commit of an OpenAI client needs, as with the hosted service. */
const STREAM_COMMIT_MS = 100;
/**
 * Longest silence of an OpenAI client: push-to-talk clients send nothing for minutes, and do not reconnect by
 * themselves.
 */
export const REALTIME_IDLE_MS = 300_000;

/** Header with the configuration of a client secret, percent-encoded JSON; only the edge sets it. */
export const CONFIG_HEADER = 'auricle-realtime-config';

const clientEvent = z.looseObject({ type: z.string().max(100), event_id: z.string().max(512).optional() });
type ClientEvent = z.infer<typeof clientEvent>;

const APPEND = 'input_audio_buffer.append';

/**
 * Reports whether a text looks like audio, without parsing it: most clients write the type first, perhaps behind an id.
 * OpenAI's Python classes write it last.
 */
const isAppend = (text: string): boolean => text.slice(0, 640).includes(APPEND) || text.slice(-640).includes(APPEND);

/** Close code and reason of OpenAI for a session at its longest duration, after which clients open another one. */
const expired = { code: 1001, reason: 'session_expired' } as const;

/** Makes the adapter of `GET /v1/realtime`: OpenAI's transcription session. */
export function openaiRealtime(url: URL, headers: Headers): Result<LiveProtocol> {
  const config = readConfig(headers);
  const { searchParams } = url;
  const transcription = {
    model: searchParams.get('model') || undefined,
    language: searchParams.get('language') || undefined,
  };
  const given = updateConfig(config, { audio: { input: { transcription } } });
  if (!given.ok) {
    const field = String(given.refusal.params?.field ?? '').replace(/^.*\./, '');
    return no({ ...given.refusal, params: { ...given.refusal.params, field } });
  }
  const intent = searchParams.get('intent');
  if (intent !== null && intent !== 'transcription') {
    return no(refuse('field_invalid', { field: 'intent', rule: 'must be "transcription"' }));
  }
  return ok(new OpenAiRealtime(given.value));
}

/** Renders the refusal of a client without a session. */
export const refusedRealtime: Pick<LiveProtocol, 'close'> = {
  close: (end, _, request) => new OpenAiRealtime(defaultConfig).close(end, 0, request),
};

function readConfig(headers: Headers): SessionConfig {
  const remembered = headers.get(CONFIG_HEADER);
  if (remembered === null) return defaultConfig;
  const kept = updateConfig(defaultConfig, JSON.parse(decodeURIComponent(remembered)));
  return kept.ok ? kept.value : defaultConfig;
}

class OpenAiRealtime implements LiveProtocol {
  readonly name = 'openai-realtime';
  /** Official clients cannot name a session to resume. */
  readonly resumes = false;
  readonly endsByClosing = true;
  readonly idleMs = REALTIME_IDLE_MS;
  readonly unstartedMs = STREAM_VOICE_MS;
  #config: SessionConfig;
  #facts: SessionFacts = { id: 'sess_none', expiresAt: 0 };
  /** Request id of the upgrade. Errors name it, because browsers cannot read the headers of an upgrade. */
  #request: string | undefined;
  #items: Items;
  #events = 0;
  /** Last id of a commit or clear. */
  #lastRequest = 0;
  #started = false;
  /** The client was warned that audio without a model is dropped; reset by each update of the session. */
  #unconfigured = false;
  /** Bytes appended, and bytes committed by the client or the end of a turn. */
  #appended = 0;
  #committed = 0;
  /** Configuration before the last update, and the id of that update's event. */
  #before: { readonly config: SessionConfig; readonly eventId: string | undefined } | undefined;

  constructor(config: SessionConfig) {
    this.#config = config;
    this.#items = this.#makeItems('');
  }

  #makeItems(session: string): Items {
    return new Items({
      session,
      turns: () => this.#config.turnDetection !== null,
      logprobs: () => this.#config.include.includes(LOGPROBS),
      times: (granularity) => this.#config.granularities?.includes(granularity) ?? false,
    });
  }

  route(): LiveRoute {
    const { model, language, languages } = this.#config;
    return {
      ...(model !== undefined && { model }),
      ...(language !== undefined && language !== 'auto' && { language }),
      ...(languages && { languages }),
    };
  }

  rejectRoute(refusal: Refusal): readonly ClientFrame[] {
    const { config, eventId } = this.#before ?? { config: this.#config };
    this.#config = config;
    return this.#frames([this.#error(refusal, eventId)]);
  }

  open({ id, request, expires }: { id: string; request?: string; expires: number }): ClientFrame[] {
    this.#request = request;
    const short = id.replace(/[^a-zA-Z0-9]/g, '').slice(-16);
    this.#facts = { id: `sess_${short}`, expiresAt: Math.floor(expires / 1_000) };
    this.#items = this.#makeItems(short);
    return this.#frames([{ type: 'session.created', session: this.#show() }]);
  }

  receive(message: string | Uint8Array): readonly ClientCommand[] {
    if (typeof message !== 'string') {
      return this.#complain(refuse('frame_invalid', { rule: 'messages are JSON text, audio is in their base64' }));
    }
    const json = readText(message, isAppend);
    if (!json.ok) return this.#complain(json.refusal);
    const event = clientEvent.safeParse(json.value);
    if (!event.success)
      return this.#complain(refuse('frame_invalid', { rule: 'it needs a "type", which is a string' }));
    const { type, event_id } = event.data;
    const act = Object.hasOwn(this.#acts, type) ? this.#acts[type] : undefined;
    const steps = act ? act(event.data) : no(refuse('event_unknown', { event: type }));
    return steps.ok ? steps.value : this.#complain(steps.refusal, event_id);
  }

  readonly #acts: Readonly<Record<string, (event: ClientEvent) => Result<readonly ClientCommand[]>>> = {
    'session.update': (event) => this.#update(event),
    [APPEND]: (event) => this.#append(event),
    'input_audio_buffer.commit': () => this.#commit(),
    'input_audio_buffer.clear': () => this.#clear(),
  };

  #update({ session, event_id }: ClientEvent): Result<readonly ClientCommand[]> {
    const updated = updateConfig(this.#config, session);
    if (!updated.ok) return updated;
    const fixed = this.#started ? changed(this.#config, updated.value) : undefined;
    if (fixed) {
      return no(refuse('field_invalid', { field: `session.${fixed}`, rule: 'cannot change once audio was sent' }));
    }
    this.#unconfigured = false;
    const before = optionsOf(this.#config);
    const isRouteNew = changed(this.#config, updated.value) !== undefined && updated.value.model !== undefined;
    this.#before = { config: this.#config, eventId: event_id };
    this.#config = updated.value;
    const options = optionsOf(this.#config);
    const frames = this.#frames([{ type: 'session.updated', session: this.#show() }]);
    const reply: ClientCommand = { type: 'reply', frames };
    const hasChanged = JSON.stringify(before) !== JSON.stringify(options);
    if (this.#started) return ok(hasChanged ? [{ type: 'options', options }, reply] : [reply]);
    return ok([isRouteNew ? { type: 'route', route: this.route(), accepted: frames } : reply]);
  }

  #append({ audio }: ClientEvent): Result<readonly ClientCommand[]> {
    if (audio === undefined) return no(refuse('field_missing', { field: 'audio' }));
    const bytes = typeof audio === 'string' ? readBase64(audio) : undefined;
    if (!bytes) return no(refuse('field_invalid', { field: 'audio', rule: 'must be base64' }));
    if (bytes.length === 0) return ok([{ type: 'alive' }]);
    if (this.#config.model === undefined) {
      if (this.#unconfigured) return ok([{ type: 'alive' }]);
      this.#unconfigured = true;
      const field = 'session.audio.input.transcription.model';
      const rule = `the session is not configured, so audio is dropped: update ${field} first`;
      return no(refuse('frame_invalid', { rule }));
    }
    const steps: ClientCommand[] = [];
    if (!this.#started) {
      this.#started = true;
      const request = {
        ...this.route(),
        format: formatOf(this.#config),
        options: optionsOf(this.#config),
      };
      steps.push({ type: 'start', request });
    }
    this.#appended += bytes.length;
    steps.push({ type: 'audio', audio: bytes });
    return ok(steps);
  }

  #commit(): Result<readonly ClientCommand[]> {
    const seconds = (this.#appended - this.#committed) / this.#rate();
    const least = STREAM_COMMIT_MS;
    if (seconds * 1_000 < least) {
      const milliseconds = Math.floor(seconds * 1_000);
      return no(refuse('input_audio_buffer_commit_empty', { least, milliseconds }));
    }
    const full = this.#refuseFull();
    if (full) return no(full);
    this.#committed = this.#appended;
    this.#lastRequest += 1;
    const events = this.#items.commit(this.#lastRequest, seconds);
    return ok([{ type: 'finalize', id: this.#lastRequest }, ...(events.length > 0 ? [this.#reply(events)] : [])]);
  }

  #refuseFull(): Refusal | undefined {
    const most = STREAM_REQUESTS_MAX;
    return this.#items.waiting < most ? undefined : refuse('frame_invalid', { rule: `${most} like it wait already` });
  }

  #clear(): Result<readonly ClientCommand[]> {
    if (!this.#started) return ok([this.#reply([{ type: 'input_audio_buffer.cleared' }])]);
    const full = this.#refuseFull();
    if (full) return no(full);
    this.#committed = this.#appended;
    this.#lastRequest += 1;
    this.#items.clear(this.#lastRequest);
    return ok([{ type: 'clear', id: this.#lastRequest }]);
  }

  render(event: SessionEvent): readonly ClientFrame[] {
    // The end of a turn commits its audio, which the client cannot commit again.
    if (event.type === 'segment' && this.#config.turnDetection !== null) {
      this.#committed = Math.max(this.#committed, Math.min(this.#appended, event.end * this.#rate()));
    }
    return this.#frames(this.#items.render(event));
  }

  commit(time: number): readonly ClientFrame[] {
    return this.#frames(this.#items.completeBefore(time));
  }

  close(
    end: Outcome,
    _now = 0,
    request = this.#request,
  ): { frames: readonly ClientFrame[]; code: number; reason: string } {
    if ('final' in end) {
      return { frames: this.#frames(this.#items.finish()), code: 1000, reason: '' };
    }
    const { refusal } = end;
    const { reason } = refusal;
    this.#request = request;
    const error = { ...errorObject(refusal, request).error, type: 'transcription_error' };
    const frames = this.#frames([...this.#items.fail(error), this.#error(refusal)]);
    return reason === 'stream_too_long' ? { frames, ...expired } : { frames, code: refusals[reason].close, reason };
  }

  /** Returns the bytes of one second. */
  #rate(): number {
    return bytesPerSecond(formatOf(this.#config)) ?? 1;
  }

  #show() {
    return showSession(this.#config, this.#facts);
  }

  #error(refusal: Refusal, eventId?: string): ServerEvent {
    const { error } = errorObject(refusal, this.#request);
    const code = refusal.reason === 'stream_too_long' ? expired.reason : error.code;
    return { type: 'error', error: { ...error, code, event_id: eventId ?? null } };
  }

  #complain(refusal: Refusal, eventId?: string): ClientCommand[] {
    return [this.#reply([this.#error(refusal, eventId)])];
  }

  #reply(events: readonly ServerEvent[]): ClientCommand {
    return { type: 'reply', frames: this.#frames(events) };
  }

  #frames(events: readonly ServerEvent[]): string[] {
    return events.map(({ type, ...body }) => {
      this.#events += 1;
      return JSON.stringify({ type, event_id: `event_${this.#facts.id.slice(5)}_${this.#events}`, ...body });
    });
  }
}
