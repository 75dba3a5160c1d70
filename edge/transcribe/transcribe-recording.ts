import { createHash } from 'node:crypto';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { BODY_BYTES, CONTENT_TYPE_CHARACTERS } from '../../shared/speech/limits.ts';
import { wavHeader } from '../../shared/speech/wav-header.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { readLength } from '../http/body-source.ts';
import { CallerBody } from '../http/caller-body.ts';
import { readCallback, takeRecording } from '../jobs/take-recording.ts';
import { Session } from '../ledger/session.ts';
import { type RecordingQuery, readRecordingQuery } from '../protocol/deepgram-query.ts';
import { answerRecording } from '../protocol/deepgram-recording.ts';
import { refuseAsDeepgram } from '../protocol/deepgram-refuse.ts';
import { type Warning, warnOf } from '../protocol/deepgram-warning.ts';
import { readModelNames, resolveModel } from '../routing/model-names.ts';
import { Relay } from '../routing/relay.ts';
import { readSnapshots } from '../routing/snapshot.ts';
import { checkAllowed, named, sourceOf } from './transcribe.ts';
import { transcription } from './transcription.ts';

const ACTION = 'transcribe';

/**
 * Serves `POST /v1/listen`, Deepgram's interface to recordings: the body is the file and the address names everything else,
 * so the edge parses no byte of the body.
 */
export async function transcribeRecording(request: Request, context: RequestContext): Promise<Response> {
  if (readCallback(new URL(request.url).searchParams) !== undefined) return takeRecording(request, context);
  const claims = await admit(request, ACTION, context);
  if (!claims.ok) return refuseAsDeepgram(claims.refusal, context.id);
  const denied = (refusal: Refusal) =>
    refuseAsDeepgram(recordDenial(claims.value, ACTION, refusal, context), context.id);
  const query = readRequest(request, claims.value);
  if (!query.ok) return denied(query.refusal);
  const { language, languages, samples } = query.value;
  const names = await readModelNames(claims.value, context);
  const resolved = resolveModel(query.value.model, names, context);
  if (!resolved.ok) return denied(resolved.refusal);
  const model = resolved.value;
  const hints = { model, language, languages, class: request.headers.get('x-auricle-class') ?? undefined };
  const allowed = checkAllowed(ok(hints), claims.value);
  if (!allowed.ok) return denied(allowed.refusal);

  const contentType = (request.headers.get('content-type') ?? '').slice(0, CONTENT_TYPE_CHARACTERS);
  const head = { dialect: 'deepgram-listen', contentType, ...paramsOf(query.value) };
  const agentRequest = await transcription(hints, head, claims.value, context);
  if (!agentRequest.ok) return denied(agentRequest.refusal);
  const hash = createHash('sha256');
  const header = samples ? wavHeader({ ...samples, tag: samples.float ? 3 : 1 }) : new Uint8Array(0);
  const requestClass = clampClass(hints.class, claims.value.priority);
  const owner = { class: requestClass, tenant: claims.value.tenant };
  const body = new CallerBody(prepare(request.body, header, hash), context.runtime, owner);
  context.discardBody = () => body.discard();
  const created = context.runtime.now();
  const subject = { action: ACTION, ...named(agentRequest.value.hints), class: requestClass };
  const session = await Session.begin(claims.value, subject, context);
  if (!session.ok) return refuseAsDeepgram(session.refusal, context.id);

  const relay = new Relay(session.value, body, agentRequest.value, context);
  relay.watch(request.signal);
  const source = sourceOf(relay, { claims: session.value.claims, hints, names }, context);
  const newId = () => crypto.randomUUID();
  const sha256 = () => hash.digest('hex');
  const options = {
    ...query.value,
    warnings: [...query.value.warnings, ...(await warnOfDetection(query.value, model, context))],
  };
  const served = () => context.model ?? model;
  return answerRecording(source, options, { request: context.id, created, model: served, newId, sha256 });
}

/** Returns the members of the head that the query gives. */
const paramsOf = ({ terms, multichannel }: RecordingQuery) => ({
  ...(terms.length > 0 && { terms }),
  ...(multichannel && { multichannel }),
});

/** Warns of a detection without a choice: agents serve the model in one language. */
async function warnOfDetection(
  { detectLanguage }: RecordingQuery,
  model: string,
  { settings, env, runtime }: RequestContext,
): Promise<Warning[]> {
  if (!detectLanguage) return [];
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const served = snapshots
    .flatMap(({ entries }) => entries.flatMap(({ description }) => description.models))
    .filter(({ name }) => name === model);
  const languages = new Set(served.flatMap((one) => one.languages.map((tag) => tag.split('-')[0])));
  const [only] = languages;
  const text = `The model recognises one language, ${only}; nothing was detected.`;
  return languages.size === 1 ? [warnOf('detect_language', text)] : [];
}

/** Checks what can be refused before a byte of the body was read. */
function readRequest(request: Request, { sealing }: Claims): Result<RecordingQuery> {
  if (sealing === 'client') return no(refuse('sealing_required'));
  const query = readRecordingQuery(new URL(request.url).searchParams);
  if (!query.ok) return query;
  // A server that fetches addresses of callers can be made to fetch internal ones.
  if (/^application\/json\b/i.test(request.headers.get('content-type') ?? '')) {
    const rule = 'is not available: recordings are not fetched from addresses, send the file itself';
    return no(refuse('field_invalid', { field: 'url', rule }));
  }
  const limit = BODY_BYTES;
  return (readLength(request.headers) ?? 0) > limit ? no(refuse('body_too_large', { limit })) : query;
}

/** Puts `header` before the bytes of the caller and hashes them for the answer. */
function prepare(
  body: ReadableStream<Uint8Array> | null,
  header: Uint8Array,
  hash: ReturnType<typeof createHash>,
): ReadableStream<Uint8Array> | null {
  if (!body) return null;
  const through = new TransformStream<Uint8Array, Uint8Array>({
    start(controller) {
      if (header.length > 0) controller.enqueue(header);
    },
    transform(chunk, controller) {
      hash.update(chunk);
      controller.enqueue(chunk);
    },
  });
  return body.pipeThrough(through);
}
