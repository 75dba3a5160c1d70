// What follows an entry in the log of a model: the edge hears of it at once, then the audit log, and then whoever asked.
import type { Result } from '../../shared/result.ts';
import type { ModelDesk } from './model-desk.ts';
import { publishRelease } from './publish-release.ts';
import { tellLog } from './tell-log.ts';

/** Refuses with `audit_unavailable`: what was written stays written, and is told with the next question. */
export async function afterEntry(desk: ModelDesk, model: string): Promise<Result<undefined>> {
  try {
    // A roll back must not wait for anything else.
    await publishRelease(desk, model);
  } catch (error) {
    // The timer tells it again, each minute.
    desk.log({ what: 'release untold', detail: error instanceof Error ? error.name : 'unknown' });
  }
  return tellLog(desk, model);
}
