import { FILENAME_CHARACTERS, uploadRow } from '../../shared/jobs/upload-contract.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { DEFAULT_NAME } from '../../shared/registry/names.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { CONTENT_TYPE_CHARACTERS } from '../../shared/speech/limits.ts';
import { readKnownForm } from '../../shared/speech/openai-form.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { callFunctionsRoute } from '../functions/call-functions.ts';
import { HINTS_BYTES } from '../http/caller-body.ts';
import { readBoundary } from '../http/multipart.ts';
import { refuseWith } from '../http/refuse.ts';
import { type RequestHints, readRequestHints } from '../protocol/hints.ts';
import { type ModelNames, readModelNames } from '../routing/model-names.ts';
import { ACTION, grantUpload, SCOPE } from './create-upload.ts';
import { bufferFile, type FilePart, openFilePart } from './file-part.ts';
import { passThrough, readBody } from './pass-through.ts';
import { renderUpload } from './render-upload.ts';
import { readUploadBody, type UploadBody } from './upload-body.ts';

/** Reports whether the caller requests an upload instead of an immediate answer, at any length. */
export const wantsUpload = (headers: Headers): boolean => headers.get('x-auricle-upload')?.toLowerCase() === 'true';

/**
 * `POST /v1/audio/transcriptions` with `x-auricle-upload: true`: the file of the form becomes an upload, sealed while it
 * passes through, and the answer says which (202). Model and language are those of query and headers, or of fields
 * before the file, or behind a file of at most `HINTS_BYTES`; without a model the default serves. The other fields
 * describe an answer and have no effect.
 */
export async function takeForm(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const denied = (refusal: Refusal) => refuseWith(recordDenial(claims.value, ACTION, refusal, context));
  const read = readBody(request, context);
  const hints = readRequestHints(request.url, request.headers);
  const opened = await openForm(request, claims.value, read);
  if (!opened.ok) return denied(opened.refusal);
  const named = !hints.ok || hints.value.model !== undefined || opened.value.fields.has('model');
  const names = await readModelNames(claims.value, context);
  const file = named ? opened : await findModel(opened.value, names);
  if (!file.ok) return denied(file.refusal);
  const requested = readUploadRequest(hints, file.value, claims.value);
  if (!requested.ok) return denied(requested.refusal);
  const uploadRequest = { body: requested.value, headers: request.headers, kind: 'form' } as const;
  const granted = await grantUpload(uploadRequest, claims.value, context);
  if (!granted.ok) return refuseWith(granted.refusal);
  const sent = await passThrough(request, file.value.read, granted.value, context);
  if (!sent.ok) return refuseWith(sent.refusal);
  const { tenant, id, zone } = granted.value.upload;
  const question = { zone, method: 'GET', path: `/uploads/${tenant}/${id}` } as const;
  const row = await callFunctionsRoute(question, uploadRow, tenant, context);
  const location = `${new URL(request.url).origin}/v1/uploads/${id}`;
  // The file is stored, whether its row is readable now or not: after an error the caller would send it
  // again.
  const body = row.ok && row.value ? renderUpload(row.value) : { object: 'upload', id };
  return Response.json(body, { status: 202, headers: { 'cache-control': 'no-store', location } });
}

/** Reads on for the model of a form whose file comes first; in front of a longer file the default serves. */
async function findModel(opened: FilePart, names: ModelNames): Promise<Result<FilePart>> {
  const buffered = await bufferFile(opened);
  if (!buffered.ok) return buffered;
  const { fields, isWhole, read } = buffered.value;
  const byDefault = names(undefined);
  if (fields.has('model') || (isWhole && byDefault === undefined)) return buffered;
  if (byDefault === undefined) return no(refuse('hints_missing', { limit: HINTS_BYTES }));
  return ok({
    ...buffered.value,
    fields: new Map([...fields, ['model', DEFAULT_NAME]]),
    // The default is decided on: a model behind the file must be the same.
    async read() {
      const piece = await read();
      const late = fields.get('model');
      const isOther = late !== undefined && names(late) !== byDefault;
      return piece.ok && !piece.value && isOther ? no(refuse('hints_conflict', { field: 'model' })) : piece;
    },
  });
}

async function openForm(
  { headers }: Request,
  { sealing }: Claims,
  read: ReturnType<typeof readBody>,
): Promise<Result<FilePart>> {
  if (sealing === 'client') return no(refuse('sealing_required'));
  const contentType = headers.get('content-type') ?? '';
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType)) return no(refuse('content_type_wrong'));
  const boundary = readBoundary(contentType.slice(0, CONTENT_TYPE_CHARACTERS));
  if (boundary === undefined) {
    return no(refuse('content_type_invalid', { rule: 'needs a boundary of 1 to 70 characters' }));
  }
  return openFilePart(read, boundary);
}

function readUploadRequest(
  hints: Result<RequestHints>,
  { fields, filename, contentType }: FilePart,
  claims: Claims,
): Result<UploadBody> {
  if (!hints.ok) return hints;
  const model = hints.value.model ?? fields.get('model');
  if (model === undefined) return no(refuse('field_missing', { field: 'model' }));
  const language = hints.value.language ?? fields.get('language');
  const form = readKnownForm({ model: [model], ...(language && { language: [language] }) });
  if (!form.ok) return form;
  const priority = hints.value.class;
  const { languages = hints.value.languages } = form.value;
  const requested = {
    model,
    ...(form.value.language !== undefined && { language: form.value.language }),
    ...(languages && { languages }),
    ...(filename && { filename: filename.slice(0, FILENAME_CHARACTERS) }),
    ...(contentType && { content_type: contentType.slice(0, 128) }),
    ...(priority !== undefined && { priority }),
  };
  const body = readUploadBody(requested, claims);
  return body.ok ? ok(body.value) : body;
}
