import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no } from '../../shared/result.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import { readCredentials } from '../auth/credentials.ts';
import type { RequestContext } from '../context.ts';
import { rateLimitHeaders } from '../http/rate-limit.ts';
import { refuseThrown } from '../http/refuse-thrown.ts';
import { newId } from '../ledger/create-event.ts';
import { refuseAsDeepgram } from '../protocol/deepgram-refuse.ts';
import { byteRateOf, metadataMessage, pauseOf } from '../protocol/deepgram-speak.ts';
import { readSpeakQuery } from '../protocol/speech-request.ts';
import { refusalAhead } from '../routing/constraints.ts';
import { readModelNames, resolveModel } from '../routing/model-names.ts';
import { SUITE } from '../routing/setups.ts';
import { readSnapshots } from '../routing/snapshot.ts';
import { countSocket } from './count-socket.ts';
import { SpeakSession } from './speak-session.ts';
import { openSpeech, SPEAK, type SpeechWork } from './speech-relay.ts';

/** Serves `GET /v1/speak`: a WebSocket that takes text and returns speech. Refuses by HTTP, as `/v1/listen` does. */
export async function openSpeak(request: Request, context: RequestContext): Promise<Response> {
  const { authorization, protocol: subprotocol } = readCredentials(request.headers);
  const headers = new Headers(request.headers);
  if (authorization !== undefined) headers.set('authorization', authorization);
  const claims = await admit({ headers }, SPEAK, context);
  if (!claims.ok) return refuseAsDeepgram(claims.refusal, context.id);
  const deny = (refusal: Refusal) => refuseAsDeepgram(recordDenial(claims.value, SPEAK, refusal, context), context.id);
  if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') return deny(refuse('upgrade_missing'));
  if (claims.value.sealing === 'client') return deny(refuse('sealing_required'));
  const query = readSpeakQuery(new URL(request.url).searchParams, true);
  if (!query.ok) return deny(query.refusal);
  const model = resolveModel(query.value.model, await readModelNames(claims.value, context), context);
  if (!model.ok) return deny(model.refusal);
  const { settings, env, runtime } = context;
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const { tenant, zones, languages: allowed, priority } = claims.value;
  const route = { tenant, session: context.id, task: SPEAK, model: model.value, zones, allowed, suite: SUITE } as const;
  const refusal = refusalAhead({ ...route, class: priority }, snapshots, runtime.now());
  if (refusal) return deny(refusal);
  const descriptions = snapshots.flatMap(({ entries }) => entries.flatMap(({ description }) => description.models));
  const revision = descriptions.find(({ name }) => name === model.value)?.revision ?? '';
  const requested = request.headers.get('x-auricle-class') ?? undefined;
  const work = { claims: claims.value, class: requested, model: model.value, options: query.value };
  const upgraded = await countSocket(tenant, () => upgrade(work, { revision, subprotocol }, context));
  return upgraded?.response ?? deny(refuse('edge_busy'));
}

async function upgrade(
  work: Omit<SpeechWork, 'text'>,
  { revision, subprotocol }: { readonly revision: string; readonly subprotocol: string | undefined },
  context: RequestContext,
): Promise<{ readonly response: Response; readonly ended: Promise<void> }> {
  const { 0: theirs, 1: ours } = new WebSocketPair();
  context.quota = await context.recorder.readQuota(work.claims, work.claims);
  const { runtime } = context;
  // Each text that is spoken at once is a request of its own, in the allowance and on record.
  const speak = (text: string) =>
    openSpeech({ ...work, text }, { ...context, id: newId(runtime.now()) }).catch((error: unknown) =>
      no(refuseThrown(context.id, error)),
    );
  const format = { pause: pauseOf(work.options), byteRate: byteRateOf(work.options) };
  const session = new SpeakSession({ socket: ours, speak, ...format, claims: work.claims, runtime });
  context.waitUntil(session.ended);
  session.start(metadataMessage(context.id, work.model, revision));
  const headers = new Headers({
    'x-request-id': context.id,
    'dg-request-id': context.id,
    ...rateLimitHeaders(context.quota),
  });
  if (subprotocol !== undefined) headers.set('sec-websocket-protocol', subprotocol);
  return { response: new Response(null, { status: 101, webSocket: theirs, headers }), ended: session.ended };
}
