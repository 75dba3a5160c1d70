import { isOpen, servesLanguage } from '../../../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { LinkControl } from '../../../../shared/stream/link.ts';
import type { LinkMessage } from '../../../../shared/stream/link-record.ts';
import { type Detector, languageMembers } from '../asr/detect-language.ts';
import type { Recogniser } from '../asr/segment.ts';
import { createVoiceDetector, type VoiceDetector } from '../asr/vad/detect.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import type { LiveModel } from '../models/live-model.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { Ticket } from '../request/ticket.ts';
import { bugDetail } from '../telemetry/log.ts';
import { readCheckpoint, writeCheckpoint } from './checkpoint.ts';
import { detectLive } from './detect-live.ts';
import { Hearing } from './hearing.ts';
import { LanguageGate } from './language-gate.ts';
import type { Link } from './link.ts';
import { openSource } from './open-source.ts';
import type { LiveParts } from './parts.ts';
import { createReceiver } from './receiver.ts';
import { Scribe } from './scribe.ts';
import type { Source } from './source.ts';
import { firstLimit } from './stall.ts';

type Open = Extract<LinkControl, { type: 'open' }>;

export interface SessionParts {
  readonly live: LiveParts;
  readonly agent: string;
  readonly ticket: Pick<Ticket, 'class' | 'model'>;
  readonly model: ServedModel;
  readonly detector?: Detector | undefined;
  readonly link: Pick<Link, 'send' | 'congested' | 'flowing'>;
  /** Aborts when the stream has ended. */
  readonly signal: AbortSignal;
  /** The stream cannot go on. */
  readonly onRefusal: (refusal: Refusal) => void;
  readonly onUtterance: (seconds: number) => void;
}

/** An admitted live stream: takes the edge's messages in order and answers with events. */
export interface Session {
  /** Returns a promise only where something has to be waited for. */
  take(message: LinkMessage): Result<undefined> | Promise<Result<undefined>>;
  /** Half-close: sends everything that is left, then `final`. */
  end(): Promise<Result<undefined>>;
  free(): void;
}

/** Returns the language of the stream. Refuses one that the model does not have. */
function judgeLanguage({ description }: ServedModel, wanted: string | undefined): Result<string> {
  const [first] = description.languages;
  const requested = isOpen(wanted) ? undefined : wanted;
  if (!servesLanguage(description.languages, requested) || first === undefined) {
    return no(refuse('language_unknown', { model: description.name, language: String(requested) }));
  }
  return ok(requested ?? first);
}

/** Parts of a session whose `open` was accepted. */
interface Accepted {
  readonly open: Open;
  readonly language: string;
  readonly liveModel: LiveModel;
  readonly recogniser: Recogniser;
  readonly resumption: ReturnType<typeof readCheckpoint>;
  readonly source: Source;
  readonly detector: VoiceDetector;
}

/** Starts a session with the record `open`. Refuses what it asks for where that is not available. */
export async function openSession(parts: SessionParts, open: Open): Promise<Result<Session>> {
  const { model, ticket } = parts;
  if (open.model !== ticket.model) return no(refuse('ticket_invalid', undefined, 'model of the stream'));
  const { live: liveModel, recogniser } = model;
  if (!liveModel || !recogniser) return no(refuse('misdirected', undefined, 'no live model'));
  if (open.detect && !parts.detector) return no(refuse('misdirected', undefined, 'no language detector'));
  const language = judgeLanguage(model, open.language);
  if (!language.ok) return language;
  const resumption = readCheckpoint(open.from, open.format);
  const source = await openSource(open.format, resumption.origin, resumption.hearing.skip);
  if (!source.ok) return source;
  const detector = await createVoiceDetector(resumption.voice);
  const accepted = { open, language: language.value, liveModel, recogniser, resumption, detector };
  return ok(startSession(parts, { ...accepted, source: source.value }));
}

/** `time`: samples heard since the beginning of the session. */
function openScribe(parts: SessionParts, accepted: Accepted, time: () => number): Scribe {
  const { live, link, ticket, signal } = parts;
  const { open, liveModel, recogniser, resumption } = accepted;
  return new Scribe({
    ...live,
    ...live.tracks.of(liveModel.model, signal),
    live: liveModel,
    recogniser,
    class: ticket.class,
    signal,
    stall: { limit: firstLimit },
    options: open.options,
    index: resumption.index,
    lastWord: resumption.lastWord,
    send: (event) => link.send(event),
    mayInterim: () => !link.congested(),
    checkpoint: (capture, index, lastWord) =>
      link.send({ type: 'checkpoint', ...writeCheckpoint(capture, open.format, index, lastWord) }),
    onWindow: (until) => live.metrics.window(time() / MODEL_RATE - until),
    onStall: live.metrics.stall,
    onRebuild: live.metrics.rebuild,
    onUtterance: parts.onUtterance,
  });
}

/** Returns the gate of a stream whose language is detected; `undefined` for any other. */
function openGate(parts: SessionParts, { open }: Accepted, scribe: Scribe): LanguageGate | undefined {
  const { live, link, ticket, model, detector, signal, onRefusal } = parts;
  if (!open.detect || !detector) return undefined;
  const { steps } = live.tracks.of(detector.model, signal);
  return new LanguageGate({
    ...{ scribe, signal, onRefusal, served: model.description.languages, languages: open.languages },
    detect: (samples) => detectLive(samples, { detector, steps, class: ticket.class, signal }),
    onLanguage: (detected) => link.send({ type: 'language', ...detected }),
  });
}

interface HearingSink {
  readonly utterance: Scribe['utterance'];
  readonly checkpoint: Scribe['capture'];
}

function openHearing({ link }: SessionParts, accepted: Accepted, { utterance, checkpoint }: HearingSink): Hearing {
  const { open, source, detector, resumption } = accepted;
  return new Hearing({
    source,
    detector,
    options: open.options,
    state: resumption.hearing,
    events: {
      started: (at) => link.send({ type: 'speech_started', at: at / MODEL_RATE }),
      ended: (at) => link.send({ type: 'speech_ended', at: at / MODEL_RATE }),
      utterance,
      checkpoint,
    },
  });
}

function startSession(parts: SessionParts, accepted: Accepted): Session {
  const { live, model, link, signal } = parts;
  const { language, open } = accepted;
  const scribe: Scribe = openScribe(parts, accepted, () => hearing.time());
  const gate = openGate(parts, accepted, scribe);
  const sink = gate ?? scribe;
  /** Position of the newest checkpoint: it waits for recognition only, and needs no more audio. */
  let cut = open.from?.position ?? 0;
  const hearing: Hearing = openHearing(parts, accepted, {
    utterance: sink.utterance,
    checkpoint(capture) {
      cut = capture.position;
      sink.capture(capture);
    },
  });
  const { name, revision } = model.description;
  link.send({ type: 'ready', agent: parts.agent, model: name, revision, language: gate ? 'auto' : language });
  const written = scribe.run();
  written.then(
    (result) => result.ok || parts.onRefusal(result.refusal),
    (error) => parts.onRefusal(refuse('internal', undefined, bugDetail(error))),
  );
  const ear = createReceiver({
    hearing,
    scribe,
    answers: sink,
    clock: live.clock,
    position: open.from?.position ?? 0,
    acknowledge: (position) => link.send({ type: 'heard', position, time: hearing.time() / MODEL_RATE, cut }),
  });
  return {
    take(message) {
      if (signal.aborted) return ok(undefined);
      const isHeld = gate?.isFull() ?? false;
      if (!scribe.full() && !isHeld && !link.congested()) return ear.take(message);
      return Promise.all([scribe.drained(), isHeld && gate?.opened, link.flowing()]).then(() =>
        signal.aborted ? ok(undefined) : ear.take(message),
      );
    },
    async end() {
      if (signal.aborted) return ok(undefined);
      ear.stop();
      const ended = hearing.end();
      await gate?.end();
      scribe.finish();
      const result = await written;
      if (!result.ok || signal.aborted) return ok(undefined);
      // Everything heard is sent before the refusal.
      if (!ended.ok) return ended;
      const durationSeconds = hearing.time() / MODEL_RATE;
      const totals = { durationSeconds, speechSeconds: hearing.speechSeconds(), segments: scribe.segments() };
      link.send({
        type: 'final',
        model: name,
        revision,
        ...(gate ? languageMembers(gate.detected) : { language }),
        ...totals,
      });
      return ok(undefined);
    },
    free() {
      ear.stop();
      hearing.free();
    },
  };
}
