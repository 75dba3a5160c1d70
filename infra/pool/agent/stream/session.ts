import { isOpen, servesLanguage } from '../../../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { LinkControl } from '../../../../shared/stream/link.ts';
import type { LinkMessage } from '../../../../shared/stream/link-record.ts';
import type { ServedModel } from '../desk.ts';
import { bugDetail } from '../log.ts';
import { MODEL_RATE } from '../sound/mono.ts';
import type { Ticket } from '../ticket.ts';
import { createVoiceDetector } from '../voice/detect.ts';
import { readCheckpoint, writeCheckpoint } from './checkpoint.ts';
import { createEar } from './ear.ts';
import { createHearing, type Hearing } from './hearing.ts';
import type { Link } from './link.ts';
import { openSource } from './open-source.ts';
import type { LiveParts } from './parts.ts';
import { createScribe, type Scribe } from './scribe.ts';
import { firstLimit } from './stall.ts';

type Open = Extract<LinkControl, { type: 'open' }>;

export interface SessionParts {
  readonly live: LiveParts;
  readonly agent: string;
  readonly ticket: Pick<Ticket, 'class' | 'model'>;
  readonly model: ServedModel;
  readonly link: Pick<Link, 'send' | 'congested' | 'flowing'>;
  /** Aborts when nobody wants the stream any more. */
  readonly signal: AbortSignal;
  /** The stream cannot go on. */
  readonly onRefusal: (refusal: Refusal) => void;
  readonly onUtterance: (seconds: number) => void;
}

/** One live stream after it was let in: takes what the edge says, in order, and answers with events. */
export interface Session {
  /** Resolves at once when there is nothing to wait for, which is the rule. */
  take(message: LinkMessage): Result<undefined> | Promise<Result<undefined>>;
  /** Half-close: everything is said, then `final`. */
  end(): Promise<Result<undefined>>;
  free(): void;
}

/** The language of the stream, when the model has it. */
function judgeLanguage({ description }: ServedModel, wanted: string | undefined): Result<string> {
  const [first] = description.languages;
  const asked = isOpen(wanted) ? undefined : wanted;
  if (!servesLanguage(description.languages, asked) || first === undefined) {
    return no(refuse('language_unknown', { model: description.name, language: String(asked) }));
  }
  return ok(asked ?? first);
}

/** Begins with the record `open` and refuses what it asks for when that is not to be had. */
export async function openSession(parts: SessionParts, open: Open): Promise<Result<Session>> {
  const { live, model, ticket, link, signal } = parts;
  const { format, from } = open;
  if (open.model !== ticket.model) return no(refuse('ticket_invalid', undefined, 'model of the stream'));
  const { live: liveModel, recogniser } = model;
  if (!liveModel || !recogniser) return no(refuse('misdirected', undefined, 'no live model'));
  const language = judgeLanguage(model, open.language);
  if (!language.ok) return language;
  const resumption = readCheckpoint(from, format);
  const source = await openSource(format, resumption.origin, resumption.hearing.skip);
  if (!source.ok) return source;
  const detector = await createVoiceDetector(resumption.voice);

  const scribe: Scribe = createScribe({
    ...live,
    ...live.tracks.of(liveModel.model),
    live: liveModel,
    recogniser,
    width: recogniser.decoder.width,
    class: ticket.class,
    signal,
    stall: { limit: firstLimit },
    options: open.options,
    index: resumption.index,
    lastWord: resumption.lastWord,
    send: (event) => link.send(event),
    mayInterim: () => !link.congested(),
    checkpoint: (capture, index, lastWord) =>
      link.send({ type: 'checkpoint', ...writeCheckpoint(capture, format, index, lastWord) }),
    onWindow: (until) => live.metrics.window(hearing.time() / MODEL_RATE - until),
    onStall: live.metrics.stall,
    onRebuild: live.metrics.rebuild,
    onUtterance: parts.onUtterance,
  });
  /** Position of the newest checkpoint: it waits for recognition only, and needs no more audio. */
  let cut = from?.position ?? 0;
  const hearing: Hearing = createHearing({
    source: source.value,
    detector,
    options: open.options,
    state: resumption.hearing,
    events: {
      started: (at) => link.send({ type: 'speech_started', at: at / MODEL_RATE }),
      ended: (at) => link.send({ type: 'speech_ended', at: at / MODEL_RATE }),
      utterance: scribe.utterance,
      checkpoint: (capture) => {
        cut = capture.position;
        scribe.capture(capture);
      },
    },
  });
  const { name, revision } = model.description;
  link.send({ type: 'ready', agent: parts.agent, model: name, revision, language: language.value });
  const written = scribe.run();
  written.then(
    (result) => result.ok || parts.onRefusal(result.refusal),
    (error) => parts.onRefusal(refuse('internal', undefined, bugDetail(error))),
  );

  const ear = createEar({
    hearing,
    scribe,
    clock: live.clock,
    position: from?.position ?? 0,
    heard: (position) => link.send({ type: 'heard', position, time: hearing.time() / MODEL_RATE, cut }),
  });
  return ok({
    take(message) {
      if (signal.aborted) return ok(undefined);
      if (!scribe.full() && !link.congested()) return ear.take(message);
      return Promise.all([scribe.room(), link.flowing()]).then(() =>
        signal.aborted ? ok(undefined) : ear.take(message),
      );
    },
    async end() {
      if (signal.aborted) return ok(undefined);
      ear.stop();
      hearing.end();
      scribe.finish();
      const result = await written;
      if (!result.ok || signal.aborted) return ok(undefined);
      link.send({
        type: 'final',
        model: name,
        revision,
        language: language.value,
        durationSeconds: hearing.time() / MODEL_RATE,
        speechSeconds: hearing.speechSeconds(),
        segments: scribe.segments(),
      });
      return ok(undefined);
    },
    free() {
      ear.stop();
      hearing.free();
    },
  });
}
