import { MiB } from '../../../../../shared/bytes.ts';
import { jobKey, type UploadJob } from '../../../../../shared/jobs/job.ts';
import { functionsRefusal, type OpenedJob, openedJob } from '../../../../../shared/jobs/upload-contract.ts';
import { readBounded } from '../../../../../shared/read-bounded.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import { callFunctions, type FunctionsOptions } from '../../identity/call-functions.ts';

/**
 * Longest call to open a job: functions read one row and sign a few addresses, and a cold start takes
 * seconds.
 */
const JOB_OPEN_MS = 15_000;
/** Addresses of 144 pieces, at most 2 KiB each, and the facts of an upload. */
const JOB_ANSWER_BYTES = MiB;

export interface JobsClient {
  /**
   * Returns the task of a job and the addresses it may read and write; `undefined` when the job is no longer
   * wanted. Refuses with `uploads_unavailable`: try later.
   */
  open(job: UploadJob): Promise<Result<OpenedJob | undefined>>;
}

/** Cancelled or over; deleted with its row. */
const UNWANTED = new Set([404, 409, 410]);

const unavailable = (detail: string) => no(refuse('uploads_unavailable', undefined, `back office: ${detail}`));

export function createJobsClient(options: FunctionsOptions): JobsClient {
  return {
    async open(job) {
      try {
        const response = await callFunctions(options, {
          path: '/api/jobs/open',
          job: jobKey(job),
          body: { job },
          withinMs: JOB_OPEN_MS,
        });
        const body: unknown = await readJson(response);
        if (response.status === 200) {
          const parsed = openedJob.safeParse(body);
          return parsed.success ? ok(parsed.data) : unavailable('an answer that is not understood');
        }
        if (UNWANTED.has(response.status) && functionsRefusal.safeParse(body).success) return ok(undefined);
        const reason = functionsRefusal.safeParse(body).data?.error.reason;
        return unavailable(`status ${response.status}${reason === undefined ? '' : `, ${reason}`}`);
      } catch (error) {
        return unavailable(error instanceof Error ? error.name : 'unknown');
      }
    },
  };
}

/** JSON of at most `JOB_ANSWER_BYTES`; `undefined` for anything else. */
async function readJson({ body }: Response): Promise<unknown> {
  const bytes = await readBounded(body, JOB_ANSWER_BYTES);
  try {
    return bytes && JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}
