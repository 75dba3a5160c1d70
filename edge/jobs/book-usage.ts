import { createLocalJWKSet, errors, jwtVerify } from 'jose';
import { SERVICE_TYPE } from '../../shared/callers.ts';
import { CLOCK_SKEW_S } from '../../shared/clock-offset.ts';
import { SERVICE_TOKEN_S, USAGE_REPORT_MS } from '../../shared/jobs/limits.ts';
import { isDocumentId } from '../../shared/jobs/project-id.ts';
import { EDGE_AUDIENCE, FUNCTIONS_ISSUER, type UploadUsage, uploadUsage, usageKey } from '../../shared/jobs/usage.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';

/** Audit actions of the end of the work on an upload or document, which is the request of the event. */
const ACTION = 'upload.end';
const DOCUMENT_ACTION = 'document.end';

/**
 * `POST /v1/usage`, by the functions: usage of a run of an upload or a document. One write books its seconds and records
 * its end, once for each run under any number of retries.
 */
export async function bookUsage(request: Request, context: RequestContext): Promise<Response> {
  const { recorder, runtime, id } = context;
  const caller = await verifyFunctions(request.headers.get('authorization'), context);
  if (!caller.ok) {
    return refuseWith(recorder.denyUnknown(id, 'usage', caller.refusal));
  }
  const json = await readJson(request, context);
  if (!json.ok) return refuseWith(json.refusal);
  const parsed = uploadUsage.safeParse(json.value);
  if (!parsed.success) {
    const field = parsed.error.issues[0]?.path.join('.') || 'body';
    return refuseWith(refuse('field_invalid', { field, rule: 'it is not as agreed' }));
  }
  const usage = parsed.data;
  if (usage.tenant !== caller.value) return refuseWith(refuse('token_invalid', undefined, 'another tenant'));
  const owner = { tenant: usage.tenant, zones: [usage.home] };
  const step = {
    kind: 'book',
    id: usageKey(usage),
    mode: 'strict',
    audioSeconds: usage.seconds,
    events: [recorder.mint({ type: 'inference.complete', ...endOf(usage) })],
  } as const;
  try {
    const booked = await within(recorder.send(owner, step), USAGE_REPORT_MS, runtime);
    if (booked !== late && booked.ok) return Response.json({ booked: true });
  } catch {
    // The platform failed. The functions report again, and the gate drops a repeat.
  }
  return refuseWith(recorder.refusal(owner, 'the gate did not book'));
}

function endOf({ tenant, upload, run, edition, home: _, seconds, ...facts }: UploadUsage) {
  const ended = isDocumentId(upload) ? DOCUMENT_ACTION : ACTION;
  const action = run === 1 ? ended : `${ended}.${run}`;
  const { subject, language, reason, class: requestClass, model, status, bytes, milliseconds } = facts;
  return {
    tenant,
    request: upload,
    action: edition === undefined ? action : `${action}-${edition}`,
    class: requestClass,
    model,
    status,
    bytes,
    milliseconds,
    ...(status === 200 && { audioSeconds: seconds }),
    ...(subject !== undefined && { subject }),
    ...(language !== undefined && { language }),
    ...(reason !== undefined && { reason }),
  };
}

/** Verifies the functions' token and returns its tenant. */
async function verifyFunctions(
  authorization: string | null,
  { settings, runtime }: RequestContext,
): Promise<Result<string>> {
  const token = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  if (token === undefined) return no(refuse('token_missing'));
  if (!settings.serviceKeys) return no(refuse('token_invalid', undefined, 'no SERVICE_KEYS'));
  try {
    const { payload } = await jwtVerify(token, createLocalJWKSet(settings.serviceKeys), {
      issuer: FUNCTIONS_ISSUER,
      audience: EDGE_AUDIENCE,
      typ: SERVICE_TYPE,
      algorithms: ['ES256'],
      currentDate: new Date(runtime.now()),
      clockTolerance: CLOCK_SKEW_S,
      maxTokenAge: SERVICE_TOKEN_S,
      requiredClaims: ['exp', 'iat', 'tenant'],
    });
    return typeof payload.tenant === 'string' ? ok(payload.tenant) : no(refuse('token_invalid', undefined, 'tenant'));
  } catch (error) {
    if (error instanceof errors.JWTExpired) return no(refuse('token_expired'));
    return no(refuse('token_invalid', undefined, error instanceof errors.JOSEError ? error.code : 'unreadable'));
  }
}
