// What agents tell the functions of live traffic: `POST /api/agents/live`, each with its pool token and with a proof that is
// signed by the attested key, as for a job (shared/upload/callers.ts). Counts are those since the process started, so that a
// report that is told twice counts once, and one that got lost is in the next.
import { z } from 'zod';
import { sha256 } from '../audit/sha256.ts';
import { toHex } from '../hex.ts';
import { limits } from '../limits.ts';
import { toldCounts } from './live-counts.ts';
import { modelName, revisionDigest } from './revision.ts';

export const liveReport = z.object({
  v: z.literal(1),
  /** Random per process start, as in the heartbeat. */
  boot: z.string().min(16).max(64),
  /** When that was, ms since 1970: a life that began earlier is over. */
  began: z.number().int().nonnegative(),
  /** Strictly growing within a boot. */
  seq: z.number().int().positive(),
  models: z
    .array(
      z.object({
        model: modelName,
        revision: revisionDigest,
        /** Callers had these answers. */
        served: toldCounts.optional(),
        /** Nobody had these: copies of what another revision served. */
        mirrored: toldCounts.optional(),
      }),
    )
    .max(limits.liveReportRevisions.value),
});
export type LiveReport = z.infer<typeof liveReport>;

/** `report` is the JSON of a report as text: what is proved are these very characters. */
export const sentLiveReport = z.object({
  report: z.string().max(limits.liveReportBytes.value),
  proof: z.string().max(limits.heartbeatBytes.value),
});

/** What the proof of a report says in the place of a job. */
export const liveProofOf = (report: string): string => `live ${toHex(sha256(new TextEncoder().encode(report)))}`;
