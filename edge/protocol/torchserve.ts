// Models and their versions as TorchServe's management API renders them.
import { z } from 'zod';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { publicText, type Reason, type Refusal, refusals } from '../../shared/refusal.ts';
import type { ModelState } from '../../shared/registry/contract.ts';
import { STABLE } from '../../shared/registry/registry.ts';
import { stage } from '../../shared/registry/stage.ts';
import type { Version } from '../../shared/registry/version.ts';
import { refuseWith } from '../http/refuse.ts';
import { healthOf, takesWork } from '../routing/agent-health.ts';

/** Prefix of its paths, which keeps them apart from OpenAI's: the base URL of its clients. */
export const TORCHSERVE = '/v1/torchserve';

export const torchserveError = z.object({
  code: z.number().int().describe('The HTTP status'),
  type: z.string().describe("TorchServe's name of the exception"),
  message: z.string(),
});

/** TorchServe's names of errors; other reasons take the name of the status. */
const types: Readonly<Partial<Record<Reason, string>>> = {
  model_unknown: 'ModelNotFoundException',
  revision_unknown: 'ModelVersionNotFoundException',
  gate_closed: 'InvalidModelVersionException',
  stage_passed: 'InvalidModelVersionException',
  scope_missing: 'InvalidKeyException',
};

const typesOfStatus: Readonly<Record<number, string>> = {
  401: 'InvalidKeyException',
  404: 'ResourceNotFoundException',
  405: 'MethodNotAllowedException',
  408: 'RequestTimeoutException',
  409: 'ConflictStatusException',
  503: 'ServiceUnavailableException',
};

const typeOf = (reason: Reason, status: number): string =>
  types[reason] ?? typesOfStatus[status] ?? (status >= 500 ? 'InternalServerException' : 'BadRequestException');

/** Renders a refusal, with the headers of every refusal. */
export function refuseAsTorchserve(refusal: Refusal): Response {
  const { status, headers } = refuseWith(refusal);
  const { reason } = refusal;
  const error: z.infer<typeof torchserveError> = {
    code: status,
    type: typeOf(reason, refusals[reason].status),
    message: publicText(refusal),
  };
  const body = new TextEncoder().encode(JSON.stringify(error));
  headers.set('content-length', String(body.byteLength));
  return new Response(body, { status, headers });
}

export const statusAnswer = z.object({ status: z.string() });

export const listedVersions = z.object({
  nextPageToken: z.string().optional(),
  models: z.array(
    z.object({
      modelName: z.string(),
      modelUrl: z.string().describe('Digest of the default version; empty if there is none'),
    }),
  ),
});

/** Describes a version, without what agents do not report: batches, queues, memory. */
export const describedVersion = z.object({
  modelName: z.string(),
  modelVersion: z.string(),
  modelUrl: z.string().describe('Digest of the revision'),
  minWorkers: z.number().int(),
  maxWorkers: z.number().int(),
  workers: z
    .array(
      z.object({
        id: z.string(),
        startTime: z.string(),
        status: z.enum(['READY', 'UNLOADING']),
        gpu: z.boolean(),
      }),
    )
    .describe('Agents that have it loaded'),
  defaultVersion: z.boolean(),
  stage,
});

export function describeVersion(
  { model, aliases }: ModelState,
  { version, row }: Version,
  snapshots: readonly Snapshot[],
): z.infer<typeof describedVersion> {
  const { revision } = row;
  const workers = snapshots.flatMap(({ at, entries }) =>
    entries.flatMap(({ description, load, heard }) => {
      const served = description.models.find((one) => one.name === model && one.revision === revision);
      if (!served || served.tier !== undefined) return [];
      const status = takesWork(healthOf({ load, heard }, at)) ? 'READY' : 'UNLOADING';
      const startTime = new Date(served.loaded * 1_000).toISOString();
      return [{ id: description.agent, startTime, status, gpu: description.accelerator === 'gpu' } as const];
    }),
  );
  return {
    modelName: model,
    modelVersion: version,
    modelUrl: revision,
    minWorkers: workers.length,
    maxWorkers: workers.length,
    workers,
    defaultVersion: aliases.some((one) => one.alias === STABLE && one.revision === revision),
    stage: row.stage,
  };
}
