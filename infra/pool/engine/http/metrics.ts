import os from 'node:os';
import type { Served } from '../model/served.ts';
import { failureReasons } from '../refuse.ts';

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}
interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  samples(models: readonly Served[]): Sample[];
}

/** Labels as in Triton. */
const labelsOf = ({ name, version }: Served): Record<string, string> => ({ model: name, version: String(version) });

const perModel = (name: string, type: Family['type'], help: string, value: (served: Served) => number): Family => ({
  name,
  type,
  help,
  samples: (models) => models.map((served) => ({ labels: labelsOf(served), value: value(served) })),
});

const host = (name: string, help: string, value: () => number): Family => ({
  name,
  type: 'gauge',
  help,
  samples: () => [{ labels: {}, value: value() }],
});

const us = (ns: number): number => Math.round(ns / 1000);

/** Names, labels and help texts as in Triton's metrics.cc, so that its dashboards and rules work unchanged. */
const families: readonly Family[] = [
  perModel(
    'nv_inference_request_success',
    'counter',
    'Number of successful inference requests, all batch sizes',
    (m) => m.statistics.success.count,
  ),
  {
    name: 'nv_inference_request_failure',
    type: 'counter',
    help: 'Number of failed inference requests, all batch sizes',
    samples: (models) =>
      models.flatMap((served) =>
        failureReasons.map((reason) => ({
          labels: { ...labelsOf(served), reason },
          value: served.statistics.failures[reason],
        })),
      ),
  },
  perModel(
    'nv_inference_count',
    'counter',
    'Number of inferences performed (does not include cached requests)',
    (m) => m.statistics.inferences,
  ),
  perModel(
    'nv_inference_exec_count',
    'counter',
    'Number of model executions performed (does not include cached requests)',
    (m) => m.statistics.executions,
  ),
  perModel(
    'nv_inference_request_duration_us',
    'counter',
    'Cumulative inference request duration in microseconds (includes cached requests)',
    (m) => us(m.statistics.success.ns),
  ),
  perModel(
    'nv_inference_queue_duration_us',
    'counter',
    'Cumulative inference queuing duration in microseconds (includes cached requests)',
    (m) => us(m.statistics.queue.ns),
  ),
  perModel(
    'nv_inference_compute_input_duration_us',
    'counter',
    'Cumulative compute input duration in microseconds (does not include cached requests)',
    (m) => us(m.statistics.input.ns),
  ),
  perModel(
    'nv_inference_compute_infer_duration_us',
    'counter',
    'Cumulative compute inference duration in microseconds (does not include cached requests)',
    (m) => us(m.statistics.infer.ns),
  ),
  perModel(
    'nv_inference_compute_output_duration_us',
    'counter',
    'Cumulative inference compute output duration in microseconds (does not include cached requests)',
    (m) => us(m.statistics.output.ns),
  ),
  perModel(
    'nv_inference_pending_request_count',
    'gauge',
    'Instantaneous number of pending requests awaiting execution per-model.',
    (m) => m.pending,
  ),
  {
    // Ours, not Triton's: the number of streams that an engine holds.
    name: 'auricle_engine_sequences',
    type: 'gauge',
    help: 'Sequences that have begun and not ended, those that wait for a place among them',
    samples: (models) =>
      models.flatMap((served) =>
        served.sequences === undefined ? [] : [{ labels: labelsOf(served), value: served.sequences }],
      ),
  },
  {
    name: 'auricle_engine_sequences_expired_total',
    type: 'counter',
    help: 'Sequences that ended because nothing was heard of them within max_sequence_idle_microseconds',
    samples: (models) =>
      models.flatMap((served) =>
        served.sequences === undefined ? [] : [{ labels: labelsOf(served), value: served.statistics.expiredSequences }],
      ),
  },
  perModel('nv_model_load_duration_secs', 'gauge', 'Model load time in seconds', (m) => m.statistics.loadSeconds),
  host('nv_cpu_utilization', 'CPU utilization rate [0.0 - 1.0]', () =>
    Math.min(1, os.loadavg()[0]! / os.availableParallelism()),
  ),
  host('nv_cpu_memory_total_bytes', 'CPU total memory (RAM), in bytes', () => os.totalmem()),
  host('nv_cpu_memory_used_bytes', 'CPU used memory (RAM), in bytes', () => os.totalmem() - os.freemem()),
];

const escapeLabel = (text: string): string => text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');

function line(name: string, { labels, value }: Sample): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(text)}"`);
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`;
}

/** Renders the Prometheus text exposition of all served models. */
export function renderMetrics(models: readonly Served[]): string {
  return families
    .map(({ name, type, help, samples }) => {
      const lines = samples(models).map((sample) => line(name, sample));
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    })
    .join('');
}
