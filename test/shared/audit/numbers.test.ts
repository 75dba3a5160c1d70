import { describe, expect, it } from 'vitest';
import type { Manifest } from '../../../shared/audit/bundle/manifest.ts';
import { readLeafFacts } from '../../../shared/audit/verify/leaf-facts.ts';
import { Numbers } from '../../../shared/audit/verify/numbers.ts';
import { Findings } from '../../../shared/audit/verify/verdict.ts';

const base = { v: 1, id: 'i', by: 'log', p: 'log', ep: '1', pseq: 1, t: { origin: 1, edge: 1, seq: 1 } };

describe('C9 numbers of an outbox', () => {
  it('an aborted outbox has no last number, which is reported without a count', () => {
    const findings = new Findings();
    const manifest = { tenant: 'ann', query: {}, range: { tseq: [1, 1], index: [0, 3] } } as unknown as Manifest;
    const numbers = new Numbers(manifest, findings);
    const leaves = [
      { ...base, type: 'gap', p: 'gate/ann/eu', ep: 'a', pseq: 7 },
      { ...base, type: 'producer.gap', outbox: 'gate/ann/eu', epoch: 'a', from: 8 },
      { ...base, type: 'gap', p: 'gate/ann/eu', ep: 'a', pseq: 8 },
      { ...base, type: 'gap', p: 'gate/ann/eu', ep: 'a', pseq: 10 },
    ];
    for (const [index, leaf] of leaves.entries()) {
      const facts = readLeafFacts(JSON.stringify(leaf));
      if (!facts) throw new Error('no leaf');
      numbers.see(facts, index);
    }
    expect(findings.list.map(({ text }) => text)).toEqual([
      'entry 1: gate/ann/eu was broken off: events from 8 on may have been lost before they reached the log',
      'entry 3: events 9 to 9 of gate/ann/eu (a) are nowhere in the log',
    ]);
  });
});
