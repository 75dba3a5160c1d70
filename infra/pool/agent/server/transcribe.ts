import { z } from 'zod';
import { agreesOnLanguage, isOpen, servesLanguage } from '../../../../shared/pool/language.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { MIRROR_TEXT_BYTES } from '../../../../shared/registry/limits.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Opened } from '../../../../shared/seal/records.ts';
import { CONTENT_TYPE_CHARACTERS, FORM_FIELD_BYTES } from '../../../../shared/speech/limits.ts';
import { needsWords } from '../../../../shared/speech/openai-answer.ts';
import { readForm } from '../../../../shared/speech/openai-form.ts';
import { type Bias, biasOf, readTerms, termList } from '../../../../shared/speech/terms.ts';
import type { Segment } from '../../../../shared/speech/transcript.ts';
import type { Span } from '../../../../shared/trace/span.ts';
import { createRecognition } from '../asr/recognise.ts';
import { recogniseRecording } from '../asr/recognise-recording.ts';
import type { Recogniser } from '../asr/segment.ts';
import type { RecordingTotals } from '../asr/vad/listen.ts';
import { decodeSound } from '../audio/decode.ts';
import type { Level } from '../degrade/degrade.ts';
import type { CachedResult } from '../degrade/result-cache.ts';
import { StoredRecording } from '../degrade/stored-recording.ts';
import type { Tally } from '../live-counts/tally.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { AgentContext } from '../request/agent-context.ts';
import type { Answer } from '../request/answer.ts';
import type { Ticket } from '../request/ticket.ts';
import { createDetection } from './detect-recorded.ts';
import { type Fields, readMultipart } from './form.ts';
import { readRaw } from './raw.ts';

/** Record 0 of a request (`shared/pool/PROTOCOL.md`). Members of other versions are skipped. */
const head = z.object({
  v: z.literal(1),
  task: z.literal('transcribe'),
  /** `openai-audio`: the body is a multipart form with the file in it; `deepgram-listen`: it is the file. */
  dialect: z.enum(['openai-audio', 'deepgram-listen']),
  contentType: z.string(),
  model: z.string(),
  language: z.string().optional(),
  /** Detects the language, and refuses with `misdirected` one that the model does not serve. */
  detect: z.boolean().optional(),
  /** Languages among which it is; absent: any. */
  languages: z.array(z.string()).optional(),
  /** Recognises each channel by itself. */
  multichannel: z.boolean().optional(),
  /** Words and phrases to raise, where the form has no prompt before the file. */
  terms: termList.optional(),
  /** OpenAI's prompt, where the edge found it before it sent the form on. */
  prompt: z.string().max(FORM_FIELD_BYTES).optional(),
  /**
   * A copy of a request that another revision has served, with this transcript: its answer goes to no client.
   */
  mirror: z.object({ text: z.string().max(MIRROR_TEXT_BYTES) }).optional(),
});
type Head = z.infer<typeof head>;

function readHead(json: unknown, ticket: Pick<Ticket, 'model'>): Result<Head> {
  const parsed = head.safeParse(json);
  if (!parsed.success) return no(refuse('seal_broken', undefined, 'head is not understood'));
  if (parsed.data.model !== ticket.model) return no(refuse('ticket_invalid', undefined, 'model of the head'));
  // The caller wrote it, so it is the caller's form that is wrong and not the seal.
  if (parsed.data.contentType.length > CONTENT_TYPE_CHARACTERS) {
    return no(refuse('form_invalid', undefined, 'content type too long'));
  }
  return ok(parsed.data);
}

/**
 * Checks that the form agrees with what the request was routed by, and returns its fields completed by the hints. The
 * edge compares the model: it knows the names of the caller's tenant.
 */
export function checkForm(fields: Fields, hints: Pick<Head, 'model' | 'language'>, languages: readonly string[]) {
  const completed: Fields = { ...fields, model: fields.model?.join('') ? fields.model : [hints.model] };
  const form = readForm(completed);
  if (!form.ok) return form;
  const { language } = form.value;
  if (!agreesOnLanguage(language, hints.language)) return no(refuse('hints_conflict', { field: 'language' }));
  const wanted = [language, hints.language].find((tag) => !isOpen(tag));
  const [first] = languages;
  if (!servesLanguage(languages, wanted) || first === undefined) {
    return no(refuse('language_unknown', { model: hints.model, language: String(wanted) }));
  }
  const { stream } = form.value;
  return ok({ fields: completed, language: wanted ?? first, stream, wordy: needsWords(form.value) });
}

/** A field that has changed since the form was told. */
function lateField(announced: Fields, all: Fields): string | undefined {
  return Object.keys(all).find((name) => all[name]?.length !== announced[name]?.length);
}

/** How long was waited for them is noted. */
async function* plaintexts(
  records: AsyncGenerator<Result<Opened>>,
  tally: Pick<Tally, 'waited'>,
  now: () => number,
): AsyncGenerator<Result<Uint8Array>> {
  for (;;) {
    const since = now();
    const { done, value: record } = await records.next();
    tally.waited += now() - since;
    if (done) return;
    yield record.ok ? ok(record.value.plaintext) : record;
  }
}

interface Work {
  readonly context: Pick<
    AgentContext,
    'agent' | 'degrader' | 'detector' | 'dispatcher' | 'lease' | 'metrics' | 'now' | 'results'
  >;
  readonly ticket: Pick<Ticket, 'class' | 'model' | 'tenant'>;
  readonly model: ServedModel;
  readonly answer: Pick<Answer, 'send'>;
  /** Record 0. */
  readonly head: unknown;
  readonly records: AsyncGenerator<Result<Opened>>;
  readonly signal: AbortSignal;
  readonly deadline: number;
  readonly tally: Tally;
  readonly span?: Span | undefined;
  readonly onStart?: (() => void) | undefined;
}

/** Says only that it is over. */
const muted = (answer: Work['answer']): Work['answer'] => ({
  send: async (event) => (event.type === 'final' ? answer.send(event) : undefined),
});

/** How segments leave: counted, and without their words once it is known that the form asks for none. */
function createSegmentSender(answer: Work['answer'], tally: Tally, stored: StoredRecording) {
  const sender = {
    /**
     * Words are sent until the form is known, since its answer may need them; a bare recording needs none.
     */
    wordy: true,
    async send(segment: Segment): Promise<void> {
      tally.segments += 1;
      tally.copy?.texts.push(segment.text);
      stored.add(segment);
      await answer.send(sender.wordy ? segment : { ...segment, words: [] });
    },
  };
  return sender;
}

const readKeywords = ({ keywords = [] }: Fields) =>
  readTerms(
    'keywords',
    keywords.map((text) => ({ text })),
  );

/** Returns the members of `final` about the length of a recording. */
const lengthsOf = ({ seconds, speechSeconds, channels }: RecordingTotals) =>
  channels === undefined
    ? { durationSeconds: seconds, speechSeconds }
    : { durationSeconds: seconds / channels, speechSeconds, channels };

interface Reading {
  readonly work: Work;
  readonly recogniser: Recogniser;
  readonly hints: Head;
  readonly answer: Work['answer'];
  readonly level: Level;
}

/** Recognises the file of a request, or takes the stored result of the same recording (A20). */
function openReading({ work, recogniser, hints, answer, level }: Reading) {
  const { context, ticket, model, signal, deadline, tally } = work;
  const { revision } = model.description;
  const stored = new StoredRecording(context.results, hints.mirror ? 0 : level, { tenant: ticket.tenant, revision });
  const sender = createSegmentSender(answer, tally, stored);
  const detection = hints.detect
    ? createDetection({ ...work, languages: hints.languages }, model.description.languages)
    : undefined;
  let bias: Bias | undefined;
  let totals: RecordingTotals | undefined;
  let cached: CachedResult | undefined;
  const recognition = createRecognition({
    ...{ recogniser, deadline, signal, dispatcher: context.dispatcher },
    ...{ class: ticket.class, tenant: ticket.tenant, span: work.span },
    bias: () => bias,
    isNarrow: level > 0,
    onStart: work.onStart,
    onSegment: sender.send,
  });

  /** Detects the language, and tells an edge that holds the body that this agent keeps the request. */
  async function keep(opening: Float32Array): Promise<Result<undefined>> {
    const admitted = (await detection?.admit(opening)) ?? ok(undefined);
    if (admitted.ok) await answer.send({ type: 'keepalive' });
    return admitted;
  }

  /** Sends a stored result. It says nothing about the revision's speed, so the tally leaves it out. */
  async function sendCached(result: CachedResult): Promise<Result<undefined>> {
    cached = result;
    totals = result.totals;
    tally.isRecording = false;
    context.metrics.cached();
    for (const segment of result.segments) await sender.send(segment);
    return ok(undefined);
  }

  return {
    sender,
    isCached: () => cached !== undefined,
    /** Returns the members of `final` about a detected language. */
    language: () => detection?.found(),
    /**
     * Reads the file. A form that was announced leaves no time to look for a stored result, which has the language of
     * its request and not a detected one.
     */
    async read(bytes: AsyncIterable<Uint8Array>, words: Bias | undefined, isAnnounced: boolean) {
      bias = words;
      const isSeparate = hints.multichannel;
      const isFresh = isAnnounced || detection !== undefined;
      const found = isFresh ? { bytes } : await stored.find(bytes, [isSeparate, hints.language, bias], context.now());
      if ('result' in found) return sendCached(found.result);
      const sound = decodeSound(found.bytes, signal);
      const { metrics } = context;
      const recording = { sound, recognition, metrics, isSeparate, isNarrow: level > 1 };
      const all = await recogniseRecording({ ...recording, admit: detection && keep });
      if (!all.ok) return all;
      totals = all.value;
      tally.totals = totals;
      return ok(undefined);
    },
    /** Returns the number of segments and the totals once all segments were sent. */
    async finish(): Promise<Result<{ readonly segments: number; readonly totals: RecordingTotals }>> {
      const segments = cached ? ok(cached.segments.length) : await recognition.finish();
      if (!segments.ok) return segments;
      if (!totals) return no(refuse('internal', undefined, 'recording without an end'));
      if (!cached) stored.store(totals, context.now());
      context.metrics.recorded(ticket.class, totals);
      return ok({ segments: segments.value, totals });
    },
  };
}

/** Reads the body, recognises, and emits everything but a refusal. */
export async function transcribe(work: Work): Promise<Result<undefined>> {
  const { context, ticket, model, records, tally } = work;
  const { name, revision, languages } = model.description;
  const read = readHead(work.head, ticket);
  if (!read.ok) return read;
  const { recogniser } = model;
  if (!recogniser) return no(refuse('misdirected', undefined, 'the model does not recognise speech'));
  tally.isRecording = true;
  const hints = read.value;
  const { mirror } = hints;
  const level = context.degrader.level();
  // A copy is work that no caller waits for.
  if (mirror && level > 0) return no(refuse('pool_busy', undefined, 'degraded: no copies'));
  if (mirror) tally.copy = { served: mirror.text, texts: [] };
  const answer = mirror ? muted(work.answer) : work.answer;
  const reading = openReading({ work, recogniser, hints, answer, level });
  const degraded = level > 0 && { degraded: level };
  let announced: Fields | undefined;

  /**
   * A caller who asked for a stream before the file hears segments while it still sends. Then the form is settled:
   * fields behind the file come too late.
   */
  async function announceEarly(before: Fields): Promise<void> {
    const form = checkForm(before, hints, languages);
    if (!form.ok || !form.value.stream) return;
    announced = before;
    reading.sender.wordy = form.value.wordy;
    await answer.send({ type: 'form', fields: form.value.fields, ...degraded });
  }

  async function recogniseBody(bytes: AsyncIterable<Uint8Array>, before: Fields): Promise<Result<undefined>> {
    const keywords = readKeywords(before);
    if (!keywords.ok) return keywords;
    await announceEarly(before);
    const bias = biasOf(before.prompt?.[0] ?? hints.prompt, hints.terms ?? keywords.value);
    return reading.read(bytes, bias, announced !== undefined);
  }

  const body = plaintexts(records, tally, context.now);
  const isForm = hints.dialect === 'openai-audio';
  const fields = isForm
    ? await readMultipart(hints.contentType, body, recogniseBody)
    : await readRaw(body, recogniseBody);
  if (!fields.ok) return fields;
  const form = checkForm(fields.value, hints, languages);
  if (!form.ok) return form;
  if (isForm) reading.sender.wordy = form.value.wordy;
  if (!announced) {
    const isCached = reading.isCached() && { cached: true as const };
    await answer.send({ type: 'form', fields: form.value.fields, ...degraded, ...isCached });
  }
  const late = announced && lateField(announced, fields.value);
  if (late !== undefined)
    return no(refuse('field_invalid', { field: late, rule: 'must come before the file in a stream' }));
  const finished = await reading.finish();
  if (!finished.ok) return finished;
  const found = reading.language() ?? { language: form.value.language };
  const { segments, totals } = finished.value;
  await answer.send({ type: 'final', model: name, revision, ...found, ...lengthsOf(totals), segments });
  return ok(undefined);
}
