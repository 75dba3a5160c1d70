import { z } from 'zod';
import { INFER_NAME_CHARACTERS } from '../kserve/limits.ts';
import { MODEL_BODY_BYTES } from '../registry/limits.ts';
import type { ReleaseMap } from '../registry/release.ts';
import { ATTESTATION_CHARACTERS } from '../seal/limits.ts';
import { classes } from '../tenant/claims.ts';
import { agentDescription, modelDescription } from './description.ts';

/** Failed models in one report of an agent: a shared part fails few ensembles. */
export const LOAD_FAILURES_MAX = 16;
/** Engine's reason for a failed load, in logs and reports: 16 of them stay far below a heartbeat message. */
export const LOAD_REASON_CHARACTERS = 256;
/** Events the registry takes from one such message. */
export const AGENT_BATCH_EVENTS_MAX = 64;

/** A model that the engine failed to load. */
const loadFailure = z.object({
  model: z.string().max(256),
  reason: z.string().max(LOAD_REASON_CHARACTERS),
});

/** Current load of an agent. */
export const load = z.object({
  /** Requests being worked on. */
  busy: z.number().int().nonnegative(),
  /** Live streams open. Agents that know of none do not say. */
  streams: z.number().int().nonnegative().optional(),
  /** Utterances waiting for the engine, by class. */
  queued: z.object(
    Object.fromEntries(classes.map((name) => [name, z.number().int().nonnegative()])) as Record<
      (typeof classes)[number],
      z.ZodNumber
    >,
  ),
  /** Mean milliseconds one utterance holds an engine slot, over the last 10 s; 0 when none ran. */
  serviceMs: z.number().nonnegative(),
  /** No new work: the agent is about to stop. */
  draining: z.boolean(),
  /** The engine answers its readiness check. */
  engineReady: z.boolean(),
  /** Power that the pool draws, as a share of its budget (A14); above 1 over budget. Absent: not measured. */
  power: z.number().nonnegative().max(10).optional(),
  /** Steps of degradation (A20): 1 features off, 2 8 kHz sound, 3 cached results. Absent: none. */
  degraded: z.number().int().min(0).max(3).optional(),
  /** Classes whose next request the agent refuses as `pool_busy`, whichever tenant sends it. Absent: none. */
  full: z.array(z.enum(classes)).max(classes.length).optional(),
  /** Models that the engine failed to load; absent when it loaded all. */
  failed: z.array(loadFailure).max(LOAD_FAILURES_MAX).optional(),
});

/** The agent's clock when it signs, ms since 1970. */
const at = z.number().int();

/**
 * Messages agent → roster. Each is the payload of a compact JWS (RFC 7515) signed by the agent's own key, `kid` its
 * name. The key is inside the attestation of the hello, so nothing but an attested agent can report.
 */
export const agentMessage = z.discriminatedUnion('type', [
  z.object({
    v: z.literal(1),
    type: z.literal('hello'),
    /** Random per process start; a report with another boot id is refused until a new hello. */
    boot: z.string().min(16).max(64),
    seq: z.number().int().nonnegative(),
    attestation: z.string().max(ATTESTATION_CHARACTERS),
    description: agentDescription,
    at,
  }),
  z.object({
    v: z.literal(1),
    type: z.literal('report'),
    boot: z.string(),
    /** Strictly growing within a boot; others are dropped. */
    seq: z.number().int().positive(),
    load,
    /** Present when the set of revisions or a tier has changed. */
    models: z.array(modelDescription).optional(),
    /** Generation of the release map it goes by, 0 for none yet. Agents that take none do not say. */
    release: z.number().int().nonnegative().optional(),
    at,
  }),
  z.object({
    v: z.literal(1),
    type: z.literal('audit'),
    boot: z.string(),
    seq: z.number().int().positive(),
    /** Audit events of the agent, kept by it until acknowledged. */
    events: z.array(z.record(z.string(), z.unknown())).max(AGENT_BATCH_EVENTS_MAX),
  }),
]);

/** Messages roster → agent, plain JSON on the authenticated socket. */
export const rosterMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('welcome'), intervalMs: z.number().int().positive() }),
  z.object({ type: z.literal('ack'), seq: z.number().int() }),
  z.object({ type: z.literal('drain') }),
  /**
   * The release map as the functions signed it: when there is a newer one, and when a report names an older
   * one.
   */
  z.object({ type: z.literal('release'), release: z.string().max(MODEL_BODY_BYTES) }),
  z.object({
    type: z.literal('refusal'),
    reason: z.string(),
    /** The public text of the refusal, for the agent's log. */
    detail: z.string().max(INFER_NAME_CHARACTERS),
  }),
]);

export type LoadFailure = z.infer<typeof loadFailure>;
export type Load = z.infer<typeof load>;
export type AgentMessage = z.infer<typeof agentMessage>;
export type RosterMessage = z.infer<typeof rosterMessage>;

/**
 * One line of a roster snapshot: an agent, its last report, and the time of receipt (ms since 1970, roster's
 * clock).
 */
export interface RosterEntry {
  readonly description: z.infer<typeof agentDescription>;
  /** Attestation token the edge verified; its SHA-256 is bound into every seal. */
  readonly attestation: string;
  readonly load: Load;
  readonly heard: number;
  /** Generation of the release map that it goes by, where it says. */
  readonly release?: number | undefined;
}

export interface Snapshot {
  readonly zone: string;
  /** Time of the snapshot, ms since 1970 on the roster's clock. */
  readonly at: number;
  /** Start of the roster, by the same clock. */
  readonly began: number;
  readonly entries: readonly RosterEntry[];
  /** Release map that the roster knows. */
  readonly release?: ReleaseMap;
}
