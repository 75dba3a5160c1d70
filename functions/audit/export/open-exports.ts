// Exports as the functions make them: their rows, and what auditors verify with, from a folder that was made when this was
// packed or started.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { MiB } from '../../../shared/bytes.ts';
import type { Settings } from '../../settings.ts';
import type { Rows } from '../../store/rows.ts';
import type { LogContext } from '../context/log-context.ts';
import type { Reports } from '../report/reports.ts';
import type { ExportContext } from './export-context.ts';

/** Entries of one part of an export: the writer and verifiers hold it in memory with its derived formats. */
export const EXPORT_PART_BYTES = 8 * MiB;
/**
 * Bundles of entries that one step of an export reads: 131,072 entries take seconds, then the progress is
 * stored.
 */
export const EXPORT_STEP_BUNDLES = 512;

/** Parts of a bundle that are not of the log. */
const FILES = ['VERIFY.md', 'verify.html', 'verify.mjs'] as const;

/** Returns `undefined` without a verifier, since bundles carry one. */
export function openExports(
  context: LogContext,
  { AUDIT_VERIFIER }: Pick<Settings, 'AUDIT_VERIFIER'>,
  rows: Rows,
  { reporter, reads }: Pick<Reports, 'reporter' | 'reads'>,
): ExportContext | undefined {
  if (AUDIT_VERIFIER === undefined) return undefined;
  const verifier = new Map(FILES.map((name) => [name, readFileSync(path.join(AUDIT_VERIFIER, name))] as const));
  return {
    ...context,
    rows,
    reads,
    report: (zone, draft) => reporter.report(zone, draft),
    random: (count) => randomBytes(count),
    breathe: () => new Promise((settle) => setImmediate(settle)),
    partBytes: EXPORT_PART_BYTES,
    scanBundles: EXPORT_STEP_BUNDLES,
    verifier,
  };
}
