import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { type Reason, type Refusal, refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { createOpener, createSealer, type Opened } from '../../../shared/seal/records.ts';
import { openStream } from '../../../shared/seal/streams.ts';
import { readForm } from '../../../shared/speech/openai-form.ts';
import { type Answer, openAnswer } from './answer.ts';
import { bodyOf, discard } from './body.ts';
import type { Desk, ServedModel } from './desk.ts';
import { type Fields, readMultipart } from './form.ts';
import { sha256 } from './keys.ts';
import { createRecognition } from './recognise.ts';
import { decodeSound } from './sound/decode.ts';
import { MODEL_RATE } from './sound/mono.ts';
import type { Ticket } from './ticket.ts';
import { createVoiceDetector } from './voice/detect.ts';
import { type Heard, listen } from './voice/listen.ts';

/** Record 0 of a request (`shared/pool/PROTOCOL.md`). */
const head = z.object({
  v: z.literal(1),
  task: z.literal('transcribe'),
  dialect: z.literal('openai-audio'),
  contentType: z.string().max(1_024),
  query: z.record(z.string(), z.array(z.string())).default({}),
  model: z.string(),
  language: z.string().optional(),
});
type Head = z.infer<typeof head>;

const base64url = /^[A-Za-z0-9_-]{1,512}$/;

/** A request that was let in: nothing of its body was read yet. */
interface Admitted {
  readonly ticket: Ticket;
  readonly model: ServedModel;
  readonly answerKey: Uint8Array;
  readonly requestKey: Uint8Array;
}

/** Everything that is answered in plain HTTP: who asks, whether it is for us, whether there is room. */
export async function admit(desk: Desk, headers: IncomingMessage['headers']): Promise<Result<Admitted>> {
  const token = headers['auricle-ticket'];
  const encText = headers['auricle-enc'];
  if (typeof token !== 'string' || typeof encText !== 'string' || !base64url.test(encText)) {
    return no(refuse('ticket_invalid', undefined, 'headers'));
  }
  const now = desk.now();
  const read = await desk.readTicket(token, now);
  if (!read.ok) return read;
  const ticket = read.value;
  const enc = new Uint8Array(Buffer.from(encText, 'base64url'));
  if (sha256(enc) !== ticket.enc) return no(refuse('ticket_invalid', undefined, 'enc'));
  const model = desk.model(ticket.model);
  if (!model) return no(refuse('misdirected', undefined, 'model'));
  if (desk.full()) return no(refuse('pool_busy'));
  const fresh = desk.replays.admit(ticket, now);
  if (!fresh.ok) return fresh;
  const setup = await desk.keys.setup({ enc, suite: ticket.suite, attestationDigest: ticket.att, now });
  if (!setup.ok) return setup;
  const { request, answer } = await setup.value.keysFor(token);
  return ok({ ticket, model, requestKey: request, answerKey: answer });
}

function readHead(record: Result<Opened> | undefined, ticket: Ticket): Result<Head> {
  if (!record) return no(refuse('seal_broken', undefined, 'no head'));
  if (!record.ok) return record;
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder().decode(record.value.plaintext));
  } catch {
    return no(refuse('seal_broken', undefined, 'head is not JSON'));
  }
  const parsed = head.safeParse(json);
  if (!parsed.success) return no(refuse('seal_broken', undefined, 'head is not understood'));
  if (parsed.data.model !== ticket.model) return no(refuse('ticket_invalid', undefined, 'model of the head'));
  return ok(parsed.data);
}

/** Whether the form asks for what the request was routed by. The fields come back completed by the hints. */
export function judgeForm(fields: Fields, hints: Pick<Head, 'model' | 'language'>, languages: readonly string[]) {
  const completed: Fields = { ...fields, model: fields.model ?? [hints.model] };
  const form = readForm(completed);
  if (!form.ok) return form;
  const { model, language } = form.value;
  if (model !== hints.model) return no(refuse('hints_conflict', { field: 'model' }));
  const primary = (tag: string) => tag.toLowerCase().split('-')[0];
  if (language !== undefined && hints.language !== undefined && primary(language) !== primary(hints.language)) {
    return no(refuse('hints_conflict', { field: 'language' }));
  }
  const wanted = language ?? hints.language;
  const spoken = wanted === undefined ? languages[0] : languages.find((tag) => primary(tag) === primary(wanted));
  if (spoken === undefined) return no(refuse('language_unknown', { model, language: String(wanted) }));
  return ok({ fields: completed, language: wanted ?? spoken });
}

async function* plaintexts(records: AsyncGenerator<Result<Opened>>): AsyncGenerator<Result<Uint8Array>> {
  for await (const record of records) yield record.ok ? ok(record.value.plaintext) : record;
}

interface Work {
  readonly desk: Desk;
  readonly admitted: Admitted;
  readonly answer: Answer;
  readonly records: AsyncGenerator<Result<Opened>>;
  readonly signal: AbortSignal;
  readonly deadline: number;
}

/** Reads the body, recognises, and emits everything but the end of the answer. */
async function transcribe({ desk, admitted, answer, records, signal, deadline }: Work): Promise<Result<undefined>> {
  const { ticket, model } = admitted;
  const { name, revision, languages } = model.description;
  await answer.send({ type: 'ready', agent: desk.agent, model: name, revision });
  const first = await records.next();
  const read = readHead(first.done ? undefined : first.value, ticket);
  if (!read.ok) return read;
  const detector = await createVoiceDetector();
  const recognition = createRecognition({
    recogniser: model.recogniser,
    dispatcher: desk.dispatcher,
    class: ticket.class,
    deadline,
    signal,
    onSegment: (segment) => answer.send(segment),
  });
  let heard: Heard | undefined;
  try {
    const fields = await readMultipart(read.value.contentType, plaintexts(records), async (bytes) => {
      for await (const hearing of listen(decodeSound(bytes), detector)) {
        if (!hearing.ok) return hearing;
        if (hearing.value.type === 'heard') heard = hearing.value.heard;
        else {
          desk.metrics.utterance(hearing.value.utterance.samples.length / MODEL_RATE);
          const added = await recognition.add(hearing.value.utterance);
          if (!added.ok) return added;
        }
      }
      return ok(undefined);
    });
    if (!fields.ok) return fields;
    const form = judgeForm(fields.value, read.value, languages);
    if (!form.ok) return form;
    await answer.send({ type: 'form', fields: form.value.fields });
    const segments = await recognition.finish();
    if (!segments.ok) return segments;
    if (!heard) return no(refuse('internal', undefined, 'recording without an end'));
    desk.metrics.heard(ticket.class, heard);
    await answer.send({
      type: 'final',
      model: name,
      revision,
      language: form.value.language,
      durationSeconds: heard.seconds,
      speechSeconds: heard.speechSeconds,
      segments: segments.value,
    });
    return ok(undefined);
  } finally {
    detector.free();
  }
}

function answerPlainly(response: ServerResponse, incoming: IncomingMessage, { reason }: Refusal, status: number) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ reason }));
  discard(incoming);
}

/** Statuses of what is refused before the answer starts; every other reason is a bug there. */
const plain: Partial<Record<Reason, number>> = {
  ticket_invalid: 403,
  ticket_replayed: 403,
  misdirected: 421,
  seal_broken: 400,
  pool_busy: 503,
};

/** One short request from its first header to its last record. Never rejects. */
export async function serveShort(desk: Desk, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  incoming.on('error', () => {});
  response.on('error', () => {});
  const entry = desk.enter();
  try {
    const admitted = await admit(desk, incoming.headers);
    if (!admitted.ok) {
      const status = plain[admitted.refusal.reason] ?? 500;
      desk.report(admitted.refusal);
      return answerPlainly(response, incoming, admitted.refusal, status);
    }
    const outcome = await work(desk, admitted.value, incoming, response, entry.signal);
    if (!outcome.ok) desk.report(outcome.refusal);
    else desk.metrics.request('ok');
  } catch (error) {
    desk.bug(error);
    response.destroy();
  } finally {
    entry.leave();
  }
}

async function work(
  desk: Desk,
  admitted: Admitted,
  incoming: IncomingMessage,
  response: ServerResponse,
  stopped: AbortSignal,
): Promise<Result<undefined>> {
  const { ticket } = admitted;
  const sealer = await createSealer(admitted.answerKey, ticket.suite);
  const opener = await createOpener(admitted.requestKey, ticket.suite);
  const answer = openAnswer(response, sealer, desk.keepaliveMs);
  const records = openStream(bodyOf(incoming), opener);
  const cancel = new AbortController();
  // The edge is gone: nobody will read the answer, so nobody should work on it.
  const onClose = () => cancel.abort(refuse('pool_lost', undefined, 'edge connection closed'));
  response.once('close', onClose);
  const late = setTimeout(() => cancel.abort(refuse('deadline_passed')), ticket.deadlineMs);
  const onStop = () => cancel.abort(refuse('pool_busy', undefined, 'agent stops'));
  stopped.addEventListener('abort', onStop, { once: true });
  const cancelled = new Promise<Result<undefined>>((resolve) => {
    cancel.signal.addEventListener('abort', () => resolve(no(cancel.signal.reason as Refusal)), { once: true });
  });
  try {
    const deadline = desk.now() + ticket.deadlineMs;
    const done = transcribe({ desk, admitted, answer, records, signal: cancel.signal, deadline });
    const outcome = await Promise.race([done, cancelled]);
    response.off('close', onClose);
    if (!outcome.ok) {
      await answer.refuse(outcome.refusal);
      // What is still running for this request must stop, and its late errors belong to nobody.
      done.catch(() => {});
      cancel.abort(outcome.refusal);
    }
    return outcome;
  } catch (error) {
    // A bug: the edge learns that it was one, unless not even that can be sent.
    await answer.refuse(refuse('internal')).catch(() => answer.cut());
    throw error;
  } finally {
    clearTimeout(late);
    stopped.removeEventListener('abort', onStop);
    void records.return(undefined).catch(() => {});
  }
}
