// A circuit breaker for the functions at one address. Evidence against them is only a failed probe of their health route:
// no answer within its bound, or an answer that names blobs or rows as not reached. A call without an answer begins a
// probe and is no evidence by itself, since it may be one tenant's slow request; an answered refusal never begins one,
// unless it says that storage does not answer. The state is that of one isolate. Pure.

import { backOffMs } from '../../shared/back-off.ts';

/** Longest probe of functions: longer than their health route waits for a store (STORE_HEALTH_MS). */
export const CIRCUIT_PROBE_MS = 2_500;
/** Pause before the first probe of an open circuit; it doubles with each failure. */
export const CIRCUIT_FIRST_MS = 1_000;
/** Longest pause between two probes: the latest discovery of a recovery. */
const CIRCUIT_MAX_MS = 30_000;

export interface Circuit {
  /** Probes that failed in a row. The circuit is closed with 0, and open otherwise. */
  readonly failures: number;
  /** Earliest time of the next probe, epoch ms. */
  readonly probeAt: number;
  /** Pause that the last failure began, ms. */
  readonly pauseMs: number;
}

export const closedCircuit: Circuit = { failures: 0, probeAt: 0, pauseMs: 0 };

const BACK_OFF = { firstMs: CIRCUIT_FIRST_MS, maxMs: CIRCUIT_MAX_MS };

/** Decides a call: send it, refuse it, or refuse it unless the probe that it begins is answered at once. */
export function admitCall({ failures, probeAt }: Circuit, now: number): 'send' | 'refuse' | 'probe' {
  if (failures === 0) return 'send';
  return now < probeAt ? 'refuse' : 'probe';
}

/** Begins a probe, one at a time: `undefined` while another one runs or a pause lasts. A lost probe frees its slot. */
export function beginProbe(circuit: Circuit, now: number): Circuit | undefined {
  if (now < circuit.probeAt) return undefined;
  return { ...circuit, probeAt: now + 2 * CIRCUIT_PROBE_MS };
}

/** Closes the circuit, or opens it for a pause that doubles with each failure up to `CIRCUIT_MAX_MS`. */
export function endProbe({ failures }: Circuit, healthy: boolean, now: number): Circuit {
  if (healthy) return closedCircuit;
  // Full length: callers spread by their own pauses.
  const pauseMs = backOffMs(failures, BACK_OFF, 1);
  return { failures: failures + 1, probeAt: now + pauseMs, pauseMs };
}

/** Whole seconds for `retry-after` of a refused call: the current pause, after which a probe is due. */
export const retryAfterSeconds = ({ pauseMs }: Circuit): number => Math.max(1, Math.ceil(pauseMs / 1_000));

/** An answer of the health route of functions, as far as it was read. */
export interface ProbeAnswer {
  readonly status: number;
  /** States by store, where the body names them. `full`: the store answers and refuses writes. */
  readonly stores?: Readonly<Record<string, { readonly reached?: boolean; readonly full?: boolean } | undefined>>;
}

/**
 * Returns whether functions reach blobs and rows. Queues may wait. A full store is reached: functions still delete,
 * which frees it, and refuse writes with `storage_full`.
 */
export function isHealthy({ status, stores }: ProbeAnswer): boolean {
  if (status < 500) return true;
  return [stores?.blobs, stores?.rows].every((store) => store?.reached === true || store?.full === true);
}
