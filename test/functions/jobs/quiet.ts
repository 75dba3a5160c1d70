// The stores of a simulation for tests of single steps.
import { admitFile } from '../../../functions/jobs/admit.ts';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { grantUpload } from '../../../functions/jobs/grant-upload.ts';
import { takeOutcome } from '../../../functions/jobs/take-outcome.ts';
import { getUpload } from '../../../functions/jobs/uploads.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { readJob, type UploadJob } from '../../../shared/jobs/job.ts';
import { type OutcomeFacts, outcomeMetadataOf } from '../../../shared/jobs/outcome.ts';
import { type OutcomeName, outcomeBlob } from '../../../shared/jobs/paths.ts';
import type { NewUpload, UploadRow } from '../../../shared/jobs/upload-contract.ts';
import { admitHead } from '../../fault/batch/sealed-head.ts';
import { KEY, Simulation } from '../../fault/batch/simulation.ts';

/** The stores of a simulation, without its weather: every call comes back at once, and events are the test's to send. */
export class Quiet extends Simulation {
  numbers = 0;
  #office: JobContext | undefined;
  constructor() {
    super(1);
    this.world.calm = true;
    this.world.turn = async () => {};
  }

  /** The same one at each call. */
  instant(): JobContext {
    this.#office ??= this.office();
    return this.#office;
  }

  use(office: JobContext): void {
    this.#office = office;
  }

  wait(ms: number): void {
    this.world.now += ms;
  }

  async granted(more: Partial<NewUpload> = {}): Promise<{ upload: NewUpload; url: string }> {
    const random = Uint8Array.from({ length: 10 }, () => this.numbers % 256);
    this.numbers += 1;
    this.world.now += 1;
    const upload: NewUpload = {
      id: eventId(this.world.now, random),
      tenant: 'acme',
      class: 'batch',
      model: 'm',
      sealed: true,
      formats: ['json'],
      zone: 'eu',
      keepDays: 0,
      ...more,
    };
    const answer = await grantUpload(this.instant(), upload);
    if (!answer.ok) throw new Error(answer.refusal.reason);
    return { upload, url: answer.value.url };
  }

  async uploaded(more: Partial<NewUpload> = {}, told = true): Promise<NewUpload> {
    const { upload, url } = await this.granted(more);
    this.blobs.put(url, upload.sealed ? admitHead(upload.tenant, upload.id, KEY.kid) : new Uint8Array(9));
    if (told) await admitFile(this.instant(), `${upload.tenant}/${upload.id}`);
    return upload;
  }

  async outcome(upload: NewUpload, name: OutcomeName, facts: OutcomeFacts, told = true, run = 1): Promise<void> {
    const blob = outcomeBlob({ ...upload, run, name });
    this.blobs.put(`mem:create:outcomes/${blob}`, new Uint8Array(3), outcomeMetadataOf(facts));
    if (told) await takeOutcome(this.instant(), blob);
  }

  jobs(zone = 'eu'): UploadJob[] {
    return (this.queues.get(zone)?.messages ?? []).flatMap(({ body }) => readJob(body) ?? []);
  }

  async row({ tenant, id }: NewUpload): Promise<UploadRow> {
    const seen = await getUpload(this.instant(), { tenant, id });
    if (!seen.ok) throw new Error(seen.refusal.reason);
    return seen.value;
  }

  blobNames(container: string): string[] {
    return [...this.blobs.blobs.keys()].filter((name) => name.startsWith(`${container}/`));
  }
}
