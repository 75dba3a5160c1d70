import { type UploadRow, uploadRow } from '../../shared/upload/contract.ts';
import { isOver } from '../../shared/upload/state.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { refuseWith } from '../refuse.ts';
import { admit } from '../tenant/admit.ts';
import { SCOPE } from './create-upload.ts';
import { askAboutUpload } from './find-upload.ts';
import { follow } from './follow.ts';
import { tellUpload } from './tell.ts';

/** `GET /v1/uploads/{id}/events`: server-sent events, one for each change, until the upload has ended. */
export async function followUpload(
  request: Request,
  context: RequestContext,
  { name: id }: PathParams,
): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  return follow<UploadRow>(request, {
    tenant: claims.value.tenant,
    now: () => context.surroundings.now(),
    look: (after, waitSeconds, signal) => {
      const below = `/events?after=${after}&wait=${waitSeconds}`;
      return askAboutUpload(id, { method: 'GET', below, waitSeconds, signal }, uploadRow, claims.value, context);
    },
    isOver: ({ status }) => isOver(status),
    tell: tellUpload,
  });
}
