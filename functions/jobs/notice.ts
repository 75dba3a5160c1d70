// The notice of an upload's end: its id and outcome, without content. Sent as standard-webhooks defines:
// headers `webhook-id`, `webhook-timestamp`, `webhook-signature`.

import { isUploadId } from '../../shared/jobs/paths.ts';
import type { UploadRow } from '../../shared/jobs/upload-contract.ts';
import { publicText, refuse } from '../../shared/refusal.ts';

export interface UploadNotice {
  /** `upload.done`, `upload.refused`, `upload.cancelled` or `upload.expired`; `project.` and the same but the last. */
  readonly type: string;
  /** Time of the end; RFC 3339. */
  readonly timestamp: string;
  readonly data: {
    readonly id: string;
    readonly status: string;
    readonly run: number;
    readonly bytes?: number;
    readonly seconds?: number;
    readonly warnings: readonly string[];
    readonly error?: { readonly code: string; readonly message: string };
  };
}

export function noticeOf(row: UploadRow): UploadNotice {
  const { id, status, run, bytes, seconds, warnings, refusal, ended, updated } = row;
  return {
    type: `${wordOf(id)}.${status}`,
    timestamp: new Date(ended ?? updated).toISOString(),
    data: {
      id,
      status,
      run,
      ...(bytes !== undefined && { bytes }),
      ...(seconds !== undefined && { seconds }),
      warnings,
      ...(refusal && {
        error: { code: refusal.reason, message: publicText(refuse(refusal.reason, refusal.params)) },
      }),
    },
  };
}

/** `webhook-id`: the same for every delivery of one notice, so that a receiver knows it again. */
export const noticeId = ({ id, run }: Pick<UploadRow, 'id' | 'run'>): string => `${wordOf(id)}_${id}_${run}`;

const wordOf = (id: string): string => (isUploadId(id) ? 'upload' : 'project');
