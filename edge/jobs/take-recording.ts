import { type Refusal, refuse } from '../../shared/refusal.ts';
import { DEFAULT_NAME } from '../../shared/registry/names.ts';
import { no } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { readRecordingQuery } from '../protocol/deepgram-query.ts';
import { refuseAsDeepgram } from '../protocol/deepgram-refuse.ts';
import { readModelNames } from '../routing/model-names.ts';
import { ACTION, grantUpload, SCOPE } from './create-upload.ts';
import { passThrough, readBody } from './pass-through.ts';
import { readUploadBody } from './upload-body.ts';

/** Returns the callback address, if the caller requests a notice instead of an answer. */
export function readCallback(query: URLSearchParams): string | undefined {
  const callback = query.get('callback') ?? '';
  return callback === '' || callback.toLowerCase() === 'false' ? undefined : callback;
}

/**
 * `POST /v1/listen?callback=…`: the recording becomes an upload, sealed to the key of its zone on the way, so
 * that storage never holds it unsealed. The answer names the upload. The notice at its end goes to the
 * callback without the transcript, which `/v1/uploads/{id}/transcript` serves.
 */
export async function takeRecording(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseAsDeepgram(claims.refusal, context.id);
  const denied = (refusal: Refusal) =>
    refuseAsDeepgram(recordDenial(claims.value, ACTION, refusal, context), context.id);
  const names = await readModelNames(claims.value, context);
  const requested = readUploadRequest(request, claims.value, names(undefined) && DEFAULT_NAME);
  if (!requested.ok) return denied(requested.refusal);
  const uploadRequest = { body: requested.value, headers: request.headers, kind: 'recording' } as const;
  const granted = await grantUpload(uploadRequest, claims.value, context);
  if (!granted.ok) return refuseAsDeepgram(granted.refusal, context.id);
  const sent = await passThrough(request, readBody(request, context), granted.value, context);
  if (!sent.ok) return refuseAsDeepgram(sent.refusal, context.id);
  const { id } = granted.value.upload;
  const headers = { 'cache-control': 'no-store', 'dg-request-id': id };
  return Response.json({ request_id: id }, { headers });
}

function readUploadRequest({ url, headers }: Request, claims: Claims, byDefault: string | undefined) {
  if (claims.sealing === 'client') return no(refuse('sealing_required'));
  const query = new URL(url).searchParams;
  const callback = readCallback(query);
  query.delete('callback');
  const recording = readRecordingQuery(query);
  if (!recording.ok) return recording;
  const contentType = headers.get('content-type') ?? undefined;
  if (/^application\/json\b/i.test(contentType ?? '')) {
    const rule = 'is not available: recordings are not fetched from addresses, send the file itself';
    return no(refuse('field_invalid', { field: 'url', rule }));
  }
  if (recording.value.multichannel) {
    const rule = 'is not available with a callback: channels of uploads are mixed down to one';
    return no(refuse('field_invalid', { field: 'multichannel', rule }));
  }
  const { model = byDefault, language, languages } = recording.value;
  if (model === undefined) return no(refuse('field_missing', { field: 'model' }));
  return readUploadBody(
    {
      model,
      ...(language !== undefined && { language }),
      ...(languages && { languages }),
      ...(contentType !== undefined && { content_type: contentType.slice(0, 128) }),
      callback,
    },
    claims,
  );
}
