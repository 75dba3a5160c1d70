// Decisions of the circuit breaker and of Idempotency-Keys, without a clock, a network or storage.
import { describe, expect, it } from 'vitest';
import {
  admitCall,
  beginProbe,
  CIRCUIT_PROBE_MS,
  type Circuit,
  closedCircuit,
  endProbe,
  isHealthy,
  retryAfterSeconds,
} from '../../../edge/functions/circuit-breaker.ts';
import {
  claimKey,
  endKey,
  holdsKey,
  IDEMPOTENCY_KEY_S,
  type KeyClaim,
  type KeyDecision,
  type StoredKey,
} from '../../../edge/ledger/idempotency.ts';

const NOW = 1_700_000_000_000;

/** A probe of a circuit whose slot is free. */
function probe(circuit: Circuit, healthy: boolean, now: number): Circuit {
  const begun = beginProbe(circuit, now);
  if (!begun) throw new Error('the slot is taken');
  return endProbe(begun, healthy, now);
}

describe('C9 T4 a circuit breaker', () => {
  const [there, away, full] = [{ reached: true }, { reached: false }, { reached: false, full: true }];

  it('opens on a failed probe only, and closes on an answered one', () => {
    expect(admitCall(closedCircuit, NOW)).toBe('send');
    expect(probe(closedCircuit, true, NOW)).toEqual(closedCircuit);
    const open = probe(closedCircuit, false, NOW);
    expect(admitCall(open, NOW)).toBe('refuse');
    expect(admitCall(probe(open, true, open.probeAt), NOW)).toBe('send');
  });

  it('lets one probe run at a time, and another when that one was lost', () => {
    const begun = beginProbe(closedCircuit, NOW) as Circuit;
    expect(beginProbe(begun, NOW + CIRCUIT_PROBE_MS)).toBeUndefined();
    // A suspicion refuses nothing.
    expect(admitCall(begun, NOW)).toBe('send');
    expect(beginProbe(begun, NOW + 2 * CIRCUIT_PROBE_MS)).toBeDefined();
  });

  it('grows its Retry-After up to a bound while probes fail', () => {
    let circuit = closedCircuit;
    const seconds: number[] = [];
    for (let failures = 0; failures < 8; failures += 1) {
      circuit = probe(circuit, false, Math.max(NOW, circuit.probeAt));
      seconds.push(retryAfterSeconds(circuit));
      expect(admitCall(circuit, circuit.probeAt - 1)).toBe('refuse');
      expect(admitCall(circuit, circuit.probeAt)).toBe('probe');
    }
    expect(seconds).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
  });

  it.each([
    ['a healthy answer', { status: 200 }, true],
    ['a refusal that is no trouble of stores', { status: 404 }, true],
    ['queues that are away', { status: 503, stores: { blobs: there, rows: there, jobs: away } }, true],
    ['rows that are away', { status: 503, stores: { blobs: there, rows: away, jobs: there } }, false],
    ['blobs that are away', { status: 503, stores: { blobs: away, rows: there } }, false],
    ['full stores, which still delete', { status: 503, stores: { blobs: full, rows: full } }, true],
    ['full blobs beside rows that are away', { status: 503, stores: { blobs: full, rows: away } }, false],
    ['no store', { status: 503, stores: {} }, false],
    ['a gateway that answers for functions', { status: 502 }, false],
  ])('judges %s', (_, answer, healthy) => expect(isHealthy(answer)).toBe(healthy));
});

describe('T4 A8 an Idempotency-Key', () => {
  const claim: KeyClaim = { key: 'k', fingerprint: 'f', proposed: { id: 'one', zone: 'eu' } };
  const again: KeyClaim = { ...claim, proposed: { id: 'two', zone: 'us' } };
  const first = claimKey(undefined, claim, NOW).store as StoredKey;
  const run = (decision: KeyDecision) => decision.kind === 'run' && [decision.id, decision.zone, decision.done];

  it('gives a repeated request the id and zone of the first', () => {
    expect(run(claimKey(undefined, claim, NOW).decision)).toEqual(['one', 'eu', false]);
    expect(run(claimKey(endKey(first, 'done'), again, NOW + 1).decision)).toEqual(['one', 'eu', true]);
    expect(run(claimKey(endKey(first, 'unknown'), again, NOW + 1).decision)).toEqual(['one', 'eu', false]);
    expect(run(claimKey(endKey(first, 'done'), { ...again, proposed: undefined }, NOW + 1).decision)).toEqual([
      'one',
      'eu',
      true,
    ]);
  });

  it('refuses another request, and one beside the first while that runs', () => {
    expect(claimKey(first, { ...again, fingerprint: 'other' }, NOW).decision).toEqual({ kind: 'reused' });
    expect(claimKey(first, again, first.runsUntil - 1).decision).toEqual({ kind: 'running' });
    expect(run(claimKey(first, again, first.runsUntil).decision)).toEqual(['one', 'eu', false]);
  });

  it('is free again after a refusal, but not once something may have happened', () => {
    expect(endKey(first, 'refused')).toBeUndefined();
    for (const before of [endKey(first, 'done'), endKey(first, 'unknown'), first]) {
      const repeated = claimKey(before, again, first.runsUntil).store as StoredKey;
      expect(endKey(repeated, 'refused')).toMatchObject({ id: 'one', runsUntil: 0 });
    }
  });

  it('belongs to its latest run until that ends', () => {
    const before = claimKey(undefined, { ...claim, run: 'before' }, NOW).store as StoredKey;
    const after = claimKey(before, { ...again, run: 'after' }, before.runsUntil).store as StoredKey;
    expect([holdsKey(before, 'before'), holdsKey(after, 'before'), holdsKey(after, 'after')]).toEqual([
      true,
      false,
      true,
    ]);
    expect(holdsKey(endKey(after, 'refused'), 'after')).toBe(false);
  });

  it('lasts a day', () => {
    const done = endKey(first, 'done');
    const day = IDEMPOTENCY_KEY_S * 1_000;
    expect(run(claimKey(done, again, NOW + day - 1).decision)).toEqual(['one', 'eu', true]);
    expect(run(claimKey(done, again, NOW + day).decision)).toEqual(['two', 'us', false]);
    expect(claimKey(undefined, { ...claim, proposed: undefined }, NOW).decision).toEqual({ kind: 'unplaced' });
  });
});
