// Consequences of an entry in a model's log: the edge learns of it, then the audit log, then the caller.
import type { Result } from '../../shared/result.ts';
import type { ModelContext } from './model-context.ts';
import { publishRelease } from './publish-release.ts';
import { reportToLog } from './report-to-log.ts';

/** Refuses with `audit_unavailable`: the entry stays written, and the next request reports it again. */
export async function afterEntry(context: ModelContext, model: string): Promise<Result<undefined>> {
  try {
    // A rollback must not wait for anything else.
    await publishRelease(context, model);
  } catch (error) {
    // The timer publishes again each minute.
    context.log({ what: 'release untold', detail: error instanceof Error ? error.name : 'unknown' });
  }
  return reportToLog(context, model);
}
