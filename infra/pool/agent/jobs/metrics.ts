import { Counter, Histogram, type Registry } from 'prom-client';
import type { JobKind } from '../../../../shared/jobs/job.ts';
import { registerGauges } from '../telemetry/gauges.ts';

/** Metrics of batch work (C11, R14). Labels are kinds of jobs and reasons only: no tenant, no content. */
export function createBatchMetrics(registry: Registry, busy: () => number) {
  const registers = [registry];
  registerGauges(registry, { auricle_agent_jobs_busy: ['Jobs of uploads being worked on', busy] });
  const jobs = new Counter({
    name: 'auricle_agent_jobs_total',
    help: 'Jobs of uploads by kind and outcome: done, unwanted, or the reason of the refusal',
    labelNames: ['kind', 'outcome'],
    registers,
  });
  const seconds = new Counter({
    name: 'auricle_agent_job_audio_seconds_total',
    help: 'Seconds of sound that jobs have worked through',
    labelNames: ['kind'],
    registers,
  });
  const took = new Histogram({
    name: 'auricle_agent_job_seconds',
    help: 'How long a job took, its outcome and the last word to the queue included',
    labelNames: ['kind'],
    buckets: [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_000],
    registers,
  });
  return {
    ended: (kind: JobKind | 'unreadable', outcome: string) => jobs.inc({ kind, outcome }),
    recorded: (kind: JobKind, sound: number) => seconds.inc({ kind }, sound),
    took: (kind: JobKind, milliseconds: number) => took.observe({ kind }, milliseconds / 1_000),
  };
}

export type BatchMetrics = ReturnType<typeof createBatchMetrics>;
