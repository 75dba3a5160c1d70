import { createHash } from 'node:crypto';
import { z } from 'zod';
import { publicText, type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import { ok, type Result } from '../../shared/result.ts';
import { termTexts } from '../../shared/speech/terms.ts';
import { joinWords } from '../../shared/speech/words.ts';
import { showModel, showWords } from './deepgram-answer.ts';
import { Container } from './deepgram-container.ts';
import { modelUuid } from './deepgram-model.ts';
import { ENDPOINTING_MIN_MS, type LiveQuery, readLiveQuery } from './deepgram-query.ts';
import { STREAM_REQUESTS_MAX, STREAM_VOICE_MS } from './limits.ts';
import type { ClientCommand, ClientFrame, LiveProtocol, LiveRoute, Outcome, SessionEvent } from './live-protocol.ts';
import { readText } from './read-text.ts';

/** Longest silence of a Deepgram client, as with the hosted service. */
export const DEEPGRAM_IDLE_MS = 10_000;

type Interim = Extract<SessionEvent, { type: 'interim' }>;
type Segment = Extract<SessionEvent, { type: 'segment' }>;

const controlMessage = z.looseObject({ type: z.string().max(100) });
type Control = z.infer<typeof controlMessage>;

/** Features and terms that a running session can change; the address sets the rest. */
const configuration = z.object({
  features: z
    .object({
      interim_results: z.boolean(),
      endpointing: z.union([z.literal(false), z.int().min(0).max(10_000)]),
      utterance_end_ms: z.int().min(500).max(10_000),
    })
    .partial()
    .strict()
    .default({}),
  keyterms: termTexts.optional(),
});

/** Channel 0 of 1: the agent mixes channels down. */
const CHANNEL = [0, 1];

const milli = (seconds: number) => Math.round(seconds * 1_000) / 1_000;

/** Makes the adapter of `GET /v1/listen` as a WebSocket: Deepgram's live interface, version 1. */
export function deepgramListen(url: URL): Result<LiveProtocol> {
  const query = readLiveQuery(url.searchParams);
  return query.ok ? ok(new DeepgramListen(query.value)) : query;
}

class DeepgramListen implements LiveProtocol {
  readonly name = 'deepgram-listen';
  readonly resumes = false;
  readonly idleMs = DEEPGRAM_IDLE_MS;
  readonly unstartedMs = STREAM_VOICE_MS;
  #query: LiveQuery;
  #request = '';
  #created = 0;
  readonly #container: Container | undefined;
  readonly #hash = createHash('sha256');
  #started = false;
  /** Model and revision that serve. */
  #model = '';
  #revision = '';
  /** Detected language. */
  #language: Extract<SessionEvent, { type: 'language' }> | undefined;
  /** End of the last final result, seconds. */
  #finalEnd = 0;
  /** Some of the audio was transcribed. */
  #hasTranscript = false;
  /** Index and text of the last interim result. */
  #lastInterim = '';
  #finalizes = 0;
  #finalized = 0;
  /** A result of the pending `Finalize` was sent. */
  #flushed = false;

  constructor(query: LiveQuery) {
    this.#query = query;
    this.#container = query.format ? undefined : new Container();
  }

  route(): LiveRoute {
    const { model, language, languages } = this.#query;
    return { model, ...(language !== undefined && { language }), ...(languages && { languages }) };
  }

  open({ request, now }: { request: string; now: number }): ClientFrame[] {
    this.#request = request;
    this.#created = now;
    return [];
  }

  /** Starts at once when the address names the format. */
  begin(): readonly ClientCommand[] {
    return this.#start(this.#query.format);
  }

  receive(message: string | Uint8Array): readonly ClientCommand[] {
    if (typeof message !== 'string') return this.#receiveAudio(message);
    const json = readText(message);
    if (!json.ok) return this.#complain(json.refusal);
    const control = controlMessage.safeParse(json.value);
    if (!control.success) return this.#complain(refuse('frame_invalid', { rule: 'it needs a "type"' }));
    const { type } = control.data;
    const act = Object.hasOwn(this.#acts, type) ? this.#acts[type] : undefined;
    return act ? act(control.data) : this.#complain(refuse('event_unknown', { event: type }));
  }

  readonly #acts: Readonly<Record<string, (control: Control) => readonly ClientCommand[]>> = {
    KeepAlive: () => [{ type: 'alive' }],
    Finalize: () => this.#finalize(),
    CloseStream: () => [{ type: 'end' }],
    Configure: (control) => this.#configure(control),
  };

  /** Ignores an empty message: old clients end a stream with it, and others send it by mistake. */
  #receiveAudio(bytes: Uint8Array): readonly ClientCommand[] {
    if (bytes.length === 0) return [{ type: 'alive' }];
    this.#hash.update(bytes);
    if (!this.#container) return [{ type: 'audio', audio: bytes }];
    const unpacked = this.#container.push(bytes);
    if (!unpacked.ok) return [{ type: 'close', refusal: unpacked.refusal }];
    if (!unpacked.value) return [{ type: 'alive' }];
    const { format, audio } = unpacked.value;
    return [...this.#start(format), audio.length > 0 ? { type: 'audio', audio } : { type: 'alive' }];
  }

  #start(format: LiveQuery['format']): ClientCommand[] {
    if (this.#started || !format) return [];
    this.#started = true;
    const request = { ...this.route(), options: this.#query.options, format };
    return [{ type: 'start', request }];
  }

  #finalize(): readonly ClientCommand[] {
    if (!this.#started) return [{ type: 'reply', frames: [this.#nothing(true)] }];
    const most = STREAM_REQUESTS_MAX;
    if (this.#finalizes - this.#finalized >= most) {
      return this.#complain(refuse('frame_invalid', { rule: `${most} like it wait already` }));
    }
    this.#finalizes += 1;
    this.#flushed = false;
    return [{ type: 'finalize', id: this.#finalizes }];
  }

  #configure(control: Control): readonly ClientCommand[] {
    const parsed = configuration.safeParse(control);
    const { features, keyterms } = parsed.data ?? {};
    if (!features || !('features' in control || keyterms)) {
      const description =
        'Only "keyterms" and "features" with interim_results, endpointing and utterance_end_ms can change.';
      const failure = { type: 'ConfigureFailure', request_id: this.#request, error_code: 'field_invalid', description };
      return [{ type: 'reply', frames: [JSON.stringify(failure)] }];
    }
    const { options } = this.#query;
    const changed = {
      ...options,
      ...(features.interim_results !== undefined && { interim: features.interim_results }),
      ...(features.endpointing !== undefined && {
        endpointingMs:
          features.endpointing === false ? (false as const) : Math.max(ENDPOINTING_MIN_MS, features.endpointing),
      }),
      ...(features.utterance_end_ms !== undefined && { utteranceEndMs: features.utterance_end_ms }),
      ...(keyterms && { terms: keyterms.filter((text) => text !== '').map((text) => ({ text })) }),
    };
    this.#query = { ...this.#query, options: changed };
    const success = JSON.stringify({ type: 'ConfigureSuccess', request_id: this.#request, ...parsed.data });
    const reply = { type: 'reply', frames: [success] } as const;
    return this.#started ? [{ type: 'options', options: changed }, reply] : [reply];
  }

  render(event: SessionEvent): readonly ClientFrame[] {
    const message = this.#renderEvent(event);
    return message ? [typeof message === 'string' ? message : JSON.stringify(message)] : [];
  }

  #renderEvent(event: SessionEvent): string | object | undefined {
    switch (event.type) {
      case 'ready':
        this.#model = event.model;
        this.#revision = event.revision;
        return undefined;
      case 'language':
        this.#model = event.model;
        this.#language = event;
        return undefined;
      case 'moved':
        this.#revision = event.revision ?? this.#revision;
        return undefined;
      case 'speech_started':
        if (!this.#query.vadEvents) return undefined;
        return { type: 'SpeechStarted', channel: CHANNEL, timestamp: milli(event.at) };
      case 'interim':
        return this.#renderInterim(event);
      case 'segment':
        this.#finalEnd = Math.max(this.#finalEnd, event.end);
        this.#flushed ||= event.ending === 'finalize';
        return this.#result(event, event.ending === 'endpoint' || event.ending === 'finalize', true);
      case 'utterance_end':
        return { type: 'UtteranceEnd', channel: CHANNEL, last_word_end: milli(event.lastWordEnd) };
      case 'finalized':
        this.#finalized = Math.max(this.#finalized, event.id);
        // A Finalize without speech is answered by an empty result.
        return this.#flushed ? undefined : this.#nothing(true);
      default:
        return undefined;
    }
  }

  /** Renders an interim without a half-spoken word, which would flicker. */
  #renderInterim(interim: Interim): object | undefined {
    if (!this.#query.options.interim) return undefined;
    const { words, whole = words.length } = interim;
    const spoken = words.slice(0, whole);
    const text = joinWords(spoken.map(({ word }) => word));
    const [first, last] = [spoken[0], spoken.at(-1)];
    if (!first || !last || `${interim.index} ${text}` === this.#lastInterim) return undefined;
    this.#lastInterim = `${interim.index} ${text}`;
    const seen = { ...interim, text, words: spoken, start: first.start, end: last.end };
    return this.#result(whole < words.length ? seen : interim, false, false);
  }

  commit(time: number): readonly ClientFrame[] {
    this.#hasTranscript ||= time > 0;
    return [];
  }

  #result(event: Interim | Segment, speechFinal: boolean, isFinal: boolean): object {
    return {
      type: 'Results',
      channel_index: CHANNEL,
      duration: milli(event.end - event.start),
      start: milli(event.start),
      is_final: isFinal,
      speech_final: speechFinal,
      channel: {
        alternatives: [
          {
            transcript: event.text,
            confidence: event.confidence,
            words: showWords(event.words),
            ...(this.#language && { languages: [this.#language.language] }),
          },
        ],
        ...(this.#language && {
          detected_language: this.#language.language,
          language_confidence: this.#language.confidence,
        }),
      },
      metadata: this.#metadata(),
      from_finalize: event.type === 'segment' && event.ending === 'finalize',
    };
  }

  #nothing(fromFinalize: boolean): string {
    return JSON.stringify({
      type: 'Results',
      channel_index: CHANNEL,
      duration: 0,
      start: milli(this.#finalEnd),
      is_final: true,
      speech_final: false,
      channel: { alternatives: [{ transcript: '', confidence: 0, words: [] }] },
      metadata: this.#metadata(),
      from_finalize: fromFinalize,
    });
  }

  #metadata() {
    return {
      request_id: this.#request,
      model_info: showModel(this.#model, this.#revision),
      model_uuid: modelUuid(this.#model, this.#revision),
    };
  }

  close(end: Outcome): { frames: readonly ClientFrame[]; code: number; reason: string } {
    if ('refusal' in end) {
      const { refusal } = end;
      return { frames: [this.#error(refusal)], ...closing(refusal, this.#hasTranscript) };
    }
    const uuid = modelUuid(this.#model, this.#revision);
    const metadata = {
      type: 'Metadata',
      transaction_key: 'deprecated',
      request_id: this.#request,
      sha256: this.#hash.digest('hex'),
      created: new Date(this.#created).toISOString(),
      duration: milli(end.final.durationSeconds),
      channels: 1,
      models: [uuid],
      model_info: { [uuid]: showModel(this.#model, this.#revision) },
      ...(this.#query.warnings.length > 0 && { warnings: this.#query.warnings }),
    };
    return { frames: [JSON.stringify(metadata)], code: 1000, reason: '' };
  }

  #complain(refusal: Refusal): ClientCommand[] {
    return [{ type: 'reply', frames: [this.#error(refusal)] }];
  }

  #error(refusal: Refusal): string {
    const text = publicText(refusal);
    const { reason } = refusal;
    return JSON.stringify({
      type: 'Error',
      code: reason,
      description: text,
      message: text,
      variant: reason,
      request_id: this.#request,
    });
  }
}

/**
 * Returns Deepgram's close code. Its clients reconnect after every close but 1000, so a refusal that would repeat closes
 * with 1000, after the error message. A refusal of the spoken language may not repeat: later speech is in another one.
 */
function closing({ reason }: Refusal, hasTranscript: boolean): { code: number; reason: string } {
  if (reason === 'stream_idle') return { code: 1011, reason: 'NET-0001 no audio or text message within the timeout' };
  // Transcribed audio makes later audio promising; otherwise the client would reconnect for ever.
  if (reason.startsWith('audio_')) return { code: hasTranscript ? 1008 : 1000, reason: `DATA-0000 ${reason}` };
  if (reason === 'message_too_large' || reason.startsWith('language_'))
    return { code: 1008, reason: `DATA-0000 ${reason}` };
  // The client continues in its next session.
  if (reason === 'stream_too_long' || reason === 'reader_slow') return { code: 1011, reason: `NET-0000 ${reason}` };
  if (refusals[reason].retry === 'never') return { code: 1000, reason };
  return { code: 1011, reason: `NET-0000 ${reason}` };
}
