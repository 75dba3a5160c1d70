// Benchmark of the audit log: throughput, added latency of an answer, time to a verifiable checkpoint, and
// the cost of verification.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startEmulator } from '../functions/audit/emulator.ts';
import { measureAck } from './audit/ack.ts';
import { makeBundles, verifyBundleHere } from './audit/bundle.ts';
import { type Latencies, measureAppends, measureEvents, measurePublish, quantile } from './audit/commits.ts';
import { makeLog, verifyHere, verifyInGo } from './audit/verify.ts';
import type { Bench } from './run.ts';

/** Events a second during the measurement of the time to a published checkpoint. */
const RATE = 200;

/** Options: `--events=40000 --seconds=30 --requests=1000 --entries=1000000 --exported=20000 --only=events,publish,ack,verify,export`. */
export async function measure(options: string[]): Promise<Bench> {
  const text = (name: string) => options.find((one) => one.startsWith(`--${name}=`))?.split('=')[1];
  const option = (name: string, otherwise: number) => Number(text(name) ?? otherwise);
  const [events, seconds] = [option('events', 40_000), option('seconds', 30)];
  const [requests, entries] = [option('requests', 1_000), option('entries', 1_000_000)];
  const exported = option('exported', 20_000);
  const only = text('only')?.split(',') ?? ['events', 'publish', 'ack', 'verify', 'export'];
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-bench-audit-'));
  try {
    const figures: Record<string, number> = {};
    if (only.includes('events')) Object.assign(figures, await eventsOf(events, folder));
    if (only.includes('publish')) Object.assign(figures, publishOf(await publishIn(seconds)));
    if (only.includes('ack')) {
      const { p50, p99 } = await measureAck(folder, requests);
      Object.assign(figures, { ack_added_ms_p50: p50, ack_added_ms_p99: p99 });
    }
    if (only.includes('verify')) Object.assign(figures, await verifyOf(path.join(folder, 'log'), entries));
    if (only.includes('export')) Object.assign(figures, await exportOf(path.join(folder, 'exports'), exported));
    return report(figures, { events, seconds, requests, entries, exported });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function eventsOf(count: number, folder: string): Promise<Record<string, number>> {
  const measured: Record<string, number> = {};
  for (const disk of [false, true]) {
    const emulator = await startEmulator(disk ? path.join(folder, 'blobs') : undefined);
    try {
      const plain = await measureAppends(emulator.direct, count);
      const { log, waiting, alone } = await measureEvents(emulator.direct, count);
      const own = disk
        ? { events_per_s_on_disk: log, ratio_vs_append_on_disk: log / plain }
        : {
            ...{ events_per_s: log, events_per_s_waiting: waiting, events_per_s_with_intake: alone },
            ...{ appends_per_s: plain, ratio_vs_append: log / plain },
          };
      Object.assign(measured, own);
    } finally {
      await emulator.stop();
    }
  }
  return measured;
}

async function publishIn(seconds: number): Promise<Latencies> {
  const emulator = await startEmulator();
  try {
    return await measurePublish(emulator.direct, RATE, seconds);
  } finally {
    await emulator.stop();
  }
}

const publishOf = ({ taken, published }: Latencies) => ({
  intake_ms_p50: quantile(taken, 0.5),
  publish_ms_p50: quantile(published, 0.5),
  publish_ms_p99: quantile(published, 0.99),
});

async function verifyOf(folder: string, entries: number): Promise<Record<string, number>> {
  const bytes = await makeLog(folder, entries);
  const { seconds, cpu, mb } = await verifyHere(folder);
  const go = await verifyInGo(folder);
  return {
    ...{ verify_s: seconds, verify_cpu_s: cpu, verify_mb: mb, entry_bytes: bytes / entries },
    ...(go !== undefined && { go_verify_s: go, verify_ratio_vs_go: seconds / go }),
  };
}

/**
 * Measures the auditor's command. The figure for a million scales the time per entry, without the start of
 * the process.
 */
async function exportOf(folder: string, count: number): Promise<Record<string, number>> {
  const figures: Record<string, number> = {};
  const { small, plain, derived } = await makeBundles(folder, count);
  const start = await verifyBundleHere(small);
  for (const [name, bundle] of [
    ['export', plain],
    ['export_formats', derived],
  ] as const) {
    const { cpu, mb } = await verifyBundleHere(bundle);
    const perMillion = ((cpu - start.cpu) / count) * 1e6;
    Object.assign(figures, { [`${name}_verify_cpu_s_per_million`]: perMillion, [`${name}_verify_mb`]: mb });
  }
  return figures;
}

const targets: Readonly<Record<string, readonly ['>=' | '<=', number]>> = {
  events_per_s: ['>=', 3_000],
  ack_added_ms_p50: ['<=', 5],
  publish_ms_p99: ['<=', 3_000],
  verify_cpu_s: ['<=', 15],
  verify_mb: ['<=', 200],
  export_verify_cpu_s_per_million: ['<=', 15],
  export_verify_mb: ['<=', 200],
  export_formats_verify_cpu_s_per_million: ['<=', 15],
  export_formats_verify_mb: ['<=', 200],
};

interface Sizes {
  readonly events: number;
  readonly seconds: number;
  readonly requests: number;
  readonly entries: number;
  readonly exported: number;
}

function report(measured: Readonly<Record<string, number>>, sizes: Sizes): Bench {
  const figures = Object.fromEntries(
    Object.entries(measured).map(([name, value]) => [name, Number(value.toPrecision(3))]),
  );
  const table = Object.entries(figures).map(([what, value]) => {
    const [sign, target] = targets[what] ?? [];
    const met = target !== undefined && (sign === '<=' ? value <= target : value >= target);
    return { what, value, target: sign ? `${sign} ${target}` : '', met: sign ? (met ? 'yes' : 'no') : '' };
  });
  const how = `Events a second: ${sizes.events} events of eight tenants and 80 subjects in deliveries of 125, put into the intake and sequenced at the same time by one process, the storage emulator in another, in memory and on disk, from the first delivery to the published checkpoint with the last; salts, commitments and encrypted values are made before, as by other instances of the functions. Waiting: all are in the intake when the clock starts. With intake: one process makes those values as well, at the same time. Append: the same events of the same senders in blocks of an append blob of the same emulator. Publish: ${RATE} events a second of four tenants for ${sizes.seconds} s, a tick a second, from the delivery of an outbox to the published checkpoint. Ack: ${sizes.requests} short requests one after the other through workerd, of a strict and of a buffered tenant in turn; the difference of their quantiles. Verify: ${sizes.entries} entries on disk, every entry and every tile hashed again against the signed checkpoint, as auricle audit verify does; CPU is user and system time of that process, its largest resident size is told; Go: golang.org/x/mod/sumdb on the same files, with all cores. That is the log alone, as whoever fetches it verifies it. Export: node verify.mjs on exports of ${sizes.exported} entries of one tenant with everything disclosed, without derived files and (export_formats) with all five formats: signatures, hashes, numbers, commitments, and of the second each derived file made again; the CPU time of a million is calculated from what each entry takes beyond the start of the process, the memory is measured and bounded by the size of a part. Whether the target for a million is met is told for each of them, not only for the log.`;
  return { figures, table, how };
}
