import type { z } from 'zod';
import { KiB } from '../../../../../shared/bytes.ts';
import type { UploadJob } from '../../../../../shared/jobs/job.ts';
import { type OutcomeFacts, outcomeMetadataOf } from '../../../../../shared/jobs/outcome.ts';
import type { OutcomeName } from '../../../../../shared/jobs/paths.ts';
import type { OpenedJob } from '../../../../../shared/jobs/upload-contract.ts';
import type { Refusal } from '../../../../../shared/refusal.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import type { FileFacts } from '../../../../../shared/seal/envelope.ts';
import type { ZoneKey } from '../../../../../shared/seal/zone-key.ts';
import type { Dispatcher } from '../../engine/dispatch.ts';
import type { ZoneKeyring } from '../../identity/zone-key.ts';
import type { LeasedModel, ServedModel } from '../../models/served-model.ts';
import { emptyContent, type Opened, openPlain, openSealed, readWhole, sealContent } from '../../storage/files.ts';
import type { BlobContent, BlobReader, Storage } from '../../storage/storage.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { JobsClient } from './jobs-client.ts';

/** Plan of an upload: two numbers for each piece. */
const PLAN_BYTES = 64 * KiB;

/** Dependencies of every job. */
export interface Workshop {
  readonly agent: string;
  readonly now: () => number;
  readonly jobsClient: JobsClient;
  readonly storage: Storage;
  readonly keyring: Pick<ZoneKeyring, 'held' | 'find'>;
  /** Returns the served model that detects languages. */
  readonly detector: () => ServedModel | undefined;
  /** Its share of the engine. */
  readonly dispatcher: Pick<Dispatcher, 'run' | 'hold' | 'queued' | 'busy'>;
  readonly metrics: Pick<Metrics, 'utterance' | 'recorded'>;
  /** Returns the revision of a model that takes jobs, while the agent serves it. */
  readonly model: (name: string) => ServedModel | undefined;
  /** Keeps a model loaded for a job; `undefined` when it is not loaded any more. */
  readonly lease: (model: ServedModel, signal: AbortSignal) => Promise<LeasedModel | undefined>;
  /** Samples of the longest piece; shorter in tests. */
  readonly pieceSamples?: number;
  /** Interval of the checks whether a job is still wanted; shorter in tests. */
  readonly wantedMs?: number;
}

/**
 * Result of a job. `done`: its outcome is written, by this agent or another. `refused`: no agent can work on
 * the recording. `failed`: it may be done later or elsewhere.
 */
export type Verdict =
  | { readonly type: 'done'; readonly seconds?: number }
  | { readonly type: 'refused'; readonly refusal: Refusal }
  | { readonly type: 'failed'; readonly refusal: Refusal };

export const failed = (refusal: Refusal): Verdict => ({ type: 'failed', refusal });

/** An opened job with everything that it uses. */
export interface Task {
  readonly shop: Workshop;
  readonly job: UploadJob;
  readonly opened: OpenedJob;
  /** Leased model of the job; absent while this agent does not serve it. */
  readonly model?: ServedModel | undefined;
  /** Key that the outcomes are sealed to. */
  readonly zone: ZoneKey;
  readonly signal: AbortSignal;
  /** Marks the job as no longer wanted: aborts `signal`. */
  readonly forget: () => void;
  /** Milliseconds since 1970. */
  readonly deadline: number;
}

export const factsOf = ({ opened: { upload } }: Task, name: string): FileFacts => ({
  tenant: upload.tenant,
  upload: upload.id,
  name,
});

const nowhere = (name: string) => refuse('uploads_unavailable', undefined, `no address for ${name}`);

/** The uploaded file. */
export function readUpload(task: Task): Result<Opened & { readonly source: BlobReader }> {
  const at = task.opened.read.upload;
  if (!at) return no(nowhere('upload'));
  const source = task.shop.storage.read(at, task.signal);
  const { sealed } = task.opened.upload;
  const opened = sealed ? openSealed(source, factsOf(task, 'upload'), task.shop.keyring) : openPlain(source);
  return ok({ ...opened, source });
}

/** An outcome of this run. */
export function readOutcomeFile(task: Task, name: OutcomeName): Result<Opened> {
  const at = task.opened.read[name];
  if (!at) return no(nowhere(name));
  const source = task.shop.storage.read(at, task.signal);
  return ok(openSealed(source, factsOf(task, `${task.opened.upload.run}/${name}`), task.shop.keyring));
}

/** The plan of this run, as `schema` knows it. */
export async function readPlan<T extends z.ZodType>(task: Task, schema: T): Promise<Result<z.infer<T>>> {
  const file = readOutcomeFile(task, 'plan');
  if (!file.ok) return file;
  const bytes = await readWhole(file.value, PLAN_BYTES);
  if (!bytes.ok) return bytes;
  try {
    return ok(schema.parse(JSON.parse(new TextDecoder().decode(bytes.value))));
  } catch {
    return no(refuse('internal', undefined, 'the plan is not understood'));
  }
}

/** Seals and writes an outcome of this run. One that is there already is as good as written. */
export async function writeOutcomeFile(
  task: Task,
  name: OutcomeName,
  chunks: readonly Uint8Array[],
  facts: OutcomeFacts,
): Promise<Result<'written' | 'exists'>> {
  const content =
    name === 'refusal' || name === 'language'
      ? emptyContent
      : sealContent(factsOf(task, `${task.opened.upload.run}/${name}`), task.zone, chunks);
  return writeContent(task, name, content, facts);
}

/** Writes content that is made while it is written. */
export async function writeContent(
  task: Task,
  name: OutcomeName,
  content: () => Promise<BlobContent>,
  facts: OutcomeFacts,
): Promise<Result<'written' | 'exists'>> {
  const at = task.opened.write[name];
  if (!at) return no(nowhere(name));
  const metadata = outcomeMetadataOf({ ...facts, agent: task.shop.agent });
  const { storage, jobsClient } = task.shop;
  const written = await storage.write(at.url, content, metadata, task.signal);
  if (!written.ok || written.value !== 'closed') return written as Result<'written' | 'exists'>;
  // The address has expired, or an attempt whose answer was lost has spent it. The functions know which:
  // either the outcome has counted and the job is no longer wanted, or they give a new address, where the
  // outcome is written or found.
  const again = await jobsClient.open(task.job);
  if (!again.ok) return again;
  if (!again.value) {
    task.forget();
    return ok('exists');
  }
  const fresh = again.value.write[name];
  if (!fresh) return no(nowhere(name));
  const second = await storage.write(fresh.url, content, metadata, task.signal);
  if (second.ok && second.value === 'closed') return no(nowhere(`${name} that writes`));
  return second as Result<'written' | 'exists'>;
}
