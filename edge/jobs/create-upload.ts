import { eventId } from '../../shared/audit/event-id.ts';
import { type NewUpload, type UploadGrant, uploadGrant } from '../../shared/jobs/upload-contract.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { callFunctionsRoute } from '../functions/call-functions.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { commitmentOfReader } from '../ledger/commitment.ts';
import { gateName } from '../ledger/record.ts';
import { Session } from '../ledger/session.ts';
import { beginKeyedRequest, type KeyedRequest } from './keyed-request.ts';
import { placeWork, uploadZones } from './place-work.ts';
import { renderGrant } from './render-upload.ts';
import { newUploadOf, readUploadBody, type ServedUpload, type UploadBody } from './upload-body.ts';

export const ACTION = 'upload';
export const SCOPE = 'uploads';

/** `POST /v1/uploads`: returns an address for one file, and the key to seal it to. */
export async function createUpload(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const denied = (refusal: Refusal) => refuseWith(recordDenial(claims.value, ACTION, refusal, context));
  const json = await readJson(request, context);
  const body = json.ok ? readUploadBody(json.value, claims.value) : json;
  if (!body.ok) return denied(body.refusal);
  const uploadRequest = { body: body.value, headers: request.headers, kind: 'upload' } as const;
  const granted = await grantUpload(uploadRequest, claims.value, context);
  if (!granted.ok) return refuseWith(granted.refusal);
  const { grant, upload, run, session } = granted.value;
  await Promise.all([session.end({ status: 201, bytes: 0 }), run.end()]);
  const { origin } = new URL(request.url);
  const { zone, sealed } = upload;
  const answer = renderGrant(grant, { tenant: claims.value.tenant, zone, sealed, origin });
  return Response.json(answer, {
    status: 201,
    headers: { 'cache-control': 'no-store', location: answer.status_url },
  });
}

export interface Granted {
  readonly grant: UploadGrant;
  readonly upload: NewUpload;
  /** Session and run are open; the caller ends both. */
  readonly session: Session;
  readonly run: KeyedRequest;
}

interface UploadRequest {
  readonly body: UploadBody;
  readonly headers: Headers;
  /** Form of the file; part of the fingerprint of an Idempotency-Key. */
  readonly kind: 'upload' | 'form' | 'recording';
}

/** Leases a slot, records the attempt and gets the grant. Refusals are recorded. */
export async function grantUpload(
  { body, headers, kind }: UploadRequest,
  claims: Claims,
  context: RequestContext,
): Promise<Result<Granted>> {
  const denied = (refusal: Refusal) => no(recordDenial(claims, ACTION, refusal, context));
  const { model, language, languages } = body;
  const work = { task: 'transcribe', model, language, languages, zone: body.zone } as const;
  const placed = await placeWork(work, claims, context);
  const zone = placed.ok ? ok(placed.value.zone) : placed;
  const newId = () => eventId(context.runtime.now(), crypto.getRandomValues(new Uint8Array(10)));
  const run = await beginKeyedRequest({ headers, request: [kind, body], newId, zone }, claims, context);
  if (!run.ok) return denied(run.refusal);
  const served = placed.ok ? { ...body, model: placed.value.model, ...placed.value.detection } : body;
  const granted = await grantRun(served, run.value, claims, context);
  if (granted.ok) return granted;
  await run.value.end(granted.refusal);
  return granted;
}

/** Gets the grant of a run, under its id. */
async function grantRun(
  body: ServedUpload,
  run: KeyedRequest,
  claims: Claims,
  context: RequestContext,
): Promise<Result<Granted>> {
  const denied = (refusal: Refusal) => no(recordDenial(claims, ACTION, refusal, context));
  const { id, zone, fingerprint } = run;
  // A token of the same subject may name other zones than that of the first request.
  if (!uploadZones(claims, context).includes(zone)) return denied(refuse('residency_mismatch'));
  const named = await commitmentOfReader(zone, claims, context);
  if (!named.ok) return denied(named.refusal);
  // Usage is reported later to the gate that admits this request.
  const home = gateName(claims, context.settings.zones).slice(claims.tenant.length + 1);
  const commitment = named.value !== undefined && { commitment: named.value };
  const keyed = fingerprint !== undefined && { fingerprint };
  const upload = { ...newUploadOf(body, claims, { id, zone, home, ...commitment }), ...keyed };
  const subject = { action: ACTION, model: upload.model, language: upload.language, class: upload.class ?? 'batch' };
  const session = await Session.begin(claims, subject, context);
  if (!session.ok) return session;
  const question = { zone, method: 'POST', path: '/uploads', body: upload, makes: id } as const;
  const grant = await session.value.guard(async () =>
    checkGrant(await callFunctionsRoute(question, uploadGrant, claims.tenant, context), upload),
  );
  return grant.ok ? ok({ grant: grant.value, upload, session: session.value, run }) : grant;
}

function checkGrant(grant: Result<UploadGrant | undefined>, { sealed }: NewUpload): Result<UploadGrant> {
  if (!grant.ok) return grant;
  if (grant.value === undefined) return no(refuse('uploads_unavailable', undefined, 'no grant'));
  // Without a zone key the caller would have to send the file unsealed, against its request.
  if (sealed && !grant.value.zoneKey) return no(refuse('uploads_closed', undefined, 'the zone has no key'));
  return ok(grant.value);
}
