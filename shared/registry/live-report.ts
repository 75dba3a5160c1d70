// Reports of live traffic from agents to the functions: `POST /api/agents/live`, each with a pool token and a
// proof signed by the attested key, as for a job (shared/callers.ts). Counts run from the start of the
// process, so that a repeated report counts once and a lost one is contained in the next.
import { z } from 'zod';
import { KiB } from '../bytes.ts';
import { toHex } from '../hex.ts';
import { sha256 } from '../sha256.ts';
import { reportedCounts } from './live-counts.ts';
import { modelName, revisionDigest } from './revision.ts';

/** Revisions of one report: those an agent has served since its start, without the oldest. */
export const LIVE_REPORT_REVISIONS_MAX = 32;
/** Report of LIVE_REPORT_REVISIONS_MAX revisions. */
const LIVE_REPORT_BYTES = 96 * KiB;
/** Hello of an agent: an attestation of a few KiB and at most some hundred models. */
export const HEARTBEAT_BYTES = 64 * KiB;
/** JSON of `sentLiveReport`, in which each quote of the report takes two bytes. */
export const SENT_REPORT_BYTES_MAX = 2 * LIVE_REPORT_BYTES + HEARTBEAT_BYTES;

export const liveReport = z.object({
  v: z.literal(1),
  /** Random per process start, as in the heartbeat. */
  boot: z.string().min(16).max(64),
  /** Start of the process, ms since 1970; it orders boots. */
  began: z.number().int().nonnegative(),
  /** Strictly growing within a boot. */
  seq: z.number().int().positive(),
  models: z
    .array(
      z.object({
        model: modelName,
        revision: revisionDigest,
        /** Counts of answers that callers received. */
        served: reportedCounts.optional(),
        /** Counts of discarded answers: copies of requests that another revision served. */
        mirrored: reportedCounts.optional(),
      }),
    )
    .max(LIVE_REPORT_REVISIONS_MAX),
});
export type LiveReport = z.infer<typeof liveReport>;

/** `report` is the JSON text of a report: the proof covers these exact characters. */
export const sentLiveReport = z.object({
  report: z.string().max(LIVE_REPORT_BYTES),
  proof: z.string().max(HEARTBEAT_BYTES),
});

/** Returns the `job` claim of a report's proof. */
export const liveProofOf = (report: string): string => `live ${toHex(sha256(new TextEncoder().encode(report)))}`;
