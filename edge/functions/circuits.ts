// The circuits of this isolate, by address of functions, and the probes that move them (circuit-breaker.ts).
import { late, type Runtime, within } from '../clock.ts';
import {
  admitCall,
  beginProbe,
  CIRCUIT_PROBE_MS,
  type Circuit,
  closedCircuit,
  endProbe,
  isHealthy,
  type ProbeAnswer,
  retryAfterSeconds,
} from './circuit-breaker.ts';

/**
 * Longest wait of a request for the probe it began: recovered functions answer sooner, and a refusal leaves
 * within 100 ms.
 */
const CIRCUIT_PEEK_MS = 50;

/** Circuits by configured address. */
const circuits = new Map<string, Circuit>();
const circuitOf = (baseUrl: string): Circuit => circuits.get(baseUrl) ?? closedCircuit;

interface Caller {
  readonly runtime: Runtime;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/** A call that was not sent, since its circuit is open. */
export class CircuitOpen {
  readonly retryAfter: number;
  constructor(retryAfter: number) {
    this.retryAfter = retryAfter;
  }
}

/**
 * Refuses a call while the circuit is open. The call that begins a probe waits for it, within a short bound.
 */
export async function passCircuit(baseUrl: string, { runtime, waitUntil }: Caller): Promise<CircuitOpen | undefined> {
  const admitted = admitCall(circuitOf(baseUrl), runtime.now());
  if (admitted === 'send') return undefined;
  if (admitted === 'probe') {
    const probing = probe(baseUrl, runtime);
    waitUntil(probing);
    await within(probing, CIRCUIT_PEEK_MS, runtime);
  }
  return openCircuit(baseUrl);
}

/** The refusal of an open circuit; `undefined` while it is closed. */
export function openCircuit(baseUrl: string): CircuitOpen | undefined {
  const circuit = circuitOf(baseUrl);
  return circuit.failures > 0 ? new CircuitOpen(retryAfterSeconds(circuit)) : undefined;
}

/**
 * Probes functions after a call without an answer, unless a probe is running, and opens or closes their
 * circuit.
 */
export async function probe(baseUrl: string, runtime: Runtime): Promise<void> {
  const begun = beginProbe(circuitOf(baseUrl), runtime.now());
  if (!begun) return;
  circuits.set(baseUrl, begun);
  const leaving = new AbortController();
  const answered = await within(readHealth(baseUrl, leaving.signal), CIRCUIT_PROBE_MS, runtime).catch(() => undefined);
  if (answered === late) leaving.abort();
  const healthy = answered !== late && answered !== undefined && isHealthy(answered);
  circuits.set(baseUrl, endProbe(begun, healthy, runtime.now()));
}

async function readHealth(baseUrl: string, signal: AbortSignal): Promise<ProbeAnswer> {
  const { status, body, headers } = await fetch(`${baseUrl}/api/health?stores`, { redirect: 'manual', signal });
  if (status !== 503 || !headers.get('content-type')?.startsWith('application/json')) {
    await body?.cancel();
    return { status };
  }
  const { stores } = (await new Response(body).json()) as Pick<ProbeAnswer, 'stores'>;
  return { status, ...(stores && { stores }) };
}
