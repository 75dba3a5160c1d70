import { jobKey, type UploadJob } from '../../../../../shared/jobs/job.ts';
import { backOfficeRefusal, type OpenedJob, openedJob } from '../../../../../shared/jobs/upload-contract.ts';
import { limits } from '../../../../../shared/limits.ts';
import { readBounded } from '../../../../../shared/read-bounded.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import { callFunctions, type FunctionsOptions } from '../../identity/call-functions.ts';

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
          withinMs: limits.jobOpenMs.value,
        });
        const body: unknown = await readJson(response);
        if (response.status === 200) {
          const parsed = openedJob.safeParse(body);
          return parsed.success ? ok(parsed.data) : unavailable('an answer that is not understood');
        }
        if (UNWANTED.has(response.status) && backOfficeRefusal.safeParse(body).success) return ok(undefined);
        const reason = backOfficeRefusal.safeParse(body).data?.error.reason;
        return unavailable(`status ${response.status}${reason === undefined ? '' : `, ${reason}`}`);
      } catch (error) {
        return unavailable(error instanceof Error ? error.name : 'unknown');
      }
    },
  };
}

/** JSON of at most `limits.jobAnswerBytes`; `undefined` for anything else. */
async function readJson({ body }: Response): Promise<unknown> {
  const bytes = await readBounded(body, limits.jobAnswerBytes.value);
  try {
    return bytes && JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}
