// Gates: requirements that open them, and everything that does not.
import { describe, expect, it } from 'vitest';
import {
  decideAlias,
  decideRevision,
  decideTransition,
  MODEL_ALIASES_MAX,
  MODEL_REVISIONS_MAX,
} from '../../../functions/registry/decide.ts';
import { FUNCTIONS, MODEL_STATEMENT_S, openGate } from '../../../functions/registry/gate.ts';
import { PROPERTIES_PER_VALUE_MAX, PROPERTY_CHARACTERS } from '../../../functions/store/table-rows.ts';
import { type Evidence, evaluateEvidence } from '../../../shared/registry/evidence.ts';
import { applyEntry, type Entry, newRegistry, placeEntry, type Registry } from '../../../shared/registry/registry.ts';
import { canaryShares, moveOf, type Standing } from '../../../shared/registry/stage.ts';
import type { GateStatement } from '../../../shared/registry/statement.ts';
import { forCanary, forGrey, quality, rates, runAt } from '../../shared/registry/people.ts';

const NOW = 1_800_000_000_000;
const A = `sha256:${'a'.repeat(64)}`;
const B = `sha256:${'b'.repeat(64)}`;
const ann = 'ann';
const CANARY: Standing = { stage: 'canary', share: 0.01 };
const LAST: Standing = { stage: 'canary', share: 0.5 };

const statement = (from: Standing, to: Standing, evidence: readonly Evidence[] = [], more = {}): GateStatement => ({
  ...{ model: 'm', revision: A, id: '1'.repeat(64), from, to, at: NOW, evidence: [...evidence] },
  ...more,
});
const gate = (made: GateStatement, ...signers: string[]) => openGate(made, ann, { signers, now: NOW });
const rule = (made: GateStatement, ...signers: string[]) => {
  const found = gate(made, ...signers);
  return found.ok ? found.value : found.refusal.params?.rule;
};

describe('C7: gates', () => {
  const passing = rates(runAt(4, 300, 5, 60));
  const grey = statement({ stage: 'develop-verify' }, { stage: 'grey' }, forGrey());
  const canary = statement({ stage: 'grey' }, CANARY, forCanary());
  const full = statement(LAST, { stage: 'full' }, [passing]);

  it('open for the required evidence', () => {
    expect(rule(grey, ann)).toBe(0);
    expect(rule(canary, 'bob')).toBe(0);
    expect(rule(full, 'bob', 'cleo')).toBe(0);
  });

  it('four eyes: full traffic needs two people other than the author', () => {
    expect(rule(full, 'bob')).toBe(1);
    expect(rule(full, 'bob', ann)).toBe(1);
    expect(rule(full, 'bob', 'bob')).toBe(1);
    expect(rule(full, ann)).toBe(2);
    expect(rule(canary, ann)).toBe(1);
  });

  it.each(['scan', 'load', 'latency', 'quality'])('grey stays closed without %s', (kind) => {
    const some = forGrey().filter((one) => one.kind !== kind);
    expect(rule(statement(grey.from, grey.to, some), ann)).toBe(`evidence of the kind "${kind}" is missing`);
  });

  it('names evidence that failed before evidence that is missing', () => {
    const load: Evidence = { kind: 'load', tool: 't', verdict: 'FAIL', facts: {} };
    expect(rule(statement(grey.from, grey.to, [load]), ann)).toBe('"load" is FAIL');
  });

  it.each<[string, Evidence]>([
    ['too few speakers', { ...(quality() as Evidence & { kind: 'quality' }), speakers: [] }],
    ['another language that is worse', quality(30)],
    ['a scan that did not finish', { kind: 'scan', tool: 't', verdict: 'INCONCLUSIVE', facts: {} }],
    ['two windows', { kind: 'latency', tool: 't', sla: 200, windows: [100, 100] }],
    ['windows that differ', { kind: 'latency', tool: 't', sla: 200, windows: [100, 100, 115] }],
    ['more than was promised', { kind: 'latency', tool: 't', sla: 100, windows: [101, 101, 101] }],
    ['a crash', { kind: 'stability', tool: 't', streams: 500, crashes: 1 }],
    ['a hundred streams', { kind: 'stability', tool: 't', streams: 100, crashes: 0 }],
    ['a PASS on few streams', { kind: 'disagreement', tool: 't', verdict: 'PASS', streams: 10, facts: {} }],
  ])('one piece without PASS closes it, for any signer: %s', (_, piece) => {
    expect(evaluateEvidence(piece, NOW)).not.toBe('PASS');
    expect(rule(statement(grey.from, grey.to, [...forGrey(), piece]), ann, 'bob', 'cleo')).toContain(
      `"${piece.kind}" is`,
    );
  });

  it('INCONCLUSIVE, other shares and few streams never reach full traffic', () => {
    const of = (run: ReturnType<typeof runAt>) => rule(statement(LAST, { stage: 'full' }, [rates(run)]), 'bob', 'cleo');
    expect(of(runAt(4, 10_000, 0, 0))).toBe('"rates" is INCONCLUSIVE');
    expect(of(runAt(4, 300, 60, 60))).toBe('"rates" is INCONCLUSIVE');
    expect(of({ ...runAt(4, 300, 5, 60), worst: 'FAIL' })).toBe('"rates" is FAIL');
    expect(of(runAt(3, 300, 5, 200))).toContain('another share');
    expect(of(runAt(4, 299, 5, 60))).toContain('fewer than 300');
  });

  it('three windows over the promise are a FAIL, at any spread', () => {
    const judge = (windows: number[]) => evaluateEvidence({ kind: 'latency', tool: 't', sla: 100, windows }, NOW);
    expect(judge([90, 150, 120, 200])).toBe('FAIL');
    expect(judge([150, 200])).toBe('INCONCLUSIVE');
    expect(judge([150, 100, 200])).toBe('INCONCLUSIVE');
  });

  it('a share grows after 300 streams without harm', () => {
    const step = (run: ReturnType<typeof runAt>) =>
      rule(statement(CANARY, { stage: 'canary', share: 0.05 }, [rates(run)]), 'bob');
    expect(step(runAt(0, 300, 0, 0))).toBe(0);
    expect(step(runAt(0, 299, 0, 0))).toContain('fewer than 300');
    expect(step(runAt(0, 300, 40, 40))).toContain('FAIL');
    expect(step(runAt(1, 300, 0, 0))).toContain('another share');
  });

  it('C7 an author alone moves no canary on reported rates', () => {
    const step = statement(CANARY, { stage: 'canary', share: 0.05 }, [rates(runAt(0, 300, 0, 0))]);
    expect(rule(step, ann)).toBe(1);
    expect(rule(step, ann, 'bob')).toBe(0);
    const measured = openGate({ ...step, evidence: [] }, ann, {
      signers: [ann],
      now: NOW,
      live: [rates(runAt(0, 300, 1, 60))],
    });
    expect(measured).toEqual({ ok: true, value: 0 });
  });

  it('C7 signed evidence never replaces measured evidence of its kind', () => {
    const step = statement(CANARY, { stage: 'canary', share: 0.05 }, [rates(runAt(0, 300, 0, 0))]);
    const closedBy = (live: Evidence, made = step) =>
      openGate(made, ann, { signers: ['bob', 'cleo'], now: NOW, live: [live] });
    expect(closedBy(rates(runAt(0, 299, 0, 5)))).toMatchObject({
      refusal: { params: { rule: expect.stringContaining('fewer than 300') } },
    });
    // Counts of the shares before are a measurement, too.
    expect(closedBy(rates(runAt(0, 0, 0, 5)))).toMatchObject({ ok: false });
    expect(closedBy({ kind: 'stability', tool: 't', streams: 5, crashes: 0 }, canary)).toMatchObject({ ok: false });
    // A measurement without a count replaces nothing.
    const nothing = { ...runAt(0, 0, 0, 0), bad: [] };
    expect(closedBy(rates(nothing))).toEqual({ ok: true, value: 0 });
  });

  it('withdrawal and retirement need a signer and no evidence', () => {
    for (const [from, to] of [
      [LAST, { stage: 'develop-verify' }],
      [LAST, CANARY],
      [{ stage: 'grey' }, { stage: 'retired' }],
    ] as [Standing, Standing][]) {
      expect(rule(statement(from, to), ann)).toBe(0);
      expect(rule(statement(from, to))).toBe(1);
    }
  });

  it('no other way leads anywhere', () => {
    const all: Standing[] = [
      { stage: 'develop-verify' },
      { stage: 'grey' },
      ...canaryShares.map((share) => ({ stage: 'canary' as const, share })),
      { stage: 'full' },
      { stage: 'retired' },
    ];
    const evidence = [...forGrey(), ...forCanary(), passing];
    for (const from of all)
      for (const to of all.filter((one) => !moveOf(from, one)))
        expect(rule(statement(from, to, evidence), 'bob', 'cleo')).toContain('there is no way');
  });

  it('evidence gets old, and is not from the future', () => {
    const week = MODEL_STATEMENT_S * 1_000;
    expect(rule({ ...grey, at: NOW - week }, ann)).toBe(0);
    expect(rule({ ...grey, at: NOW - week - 1 }, ann)).toBe('its evidence is too old');
    expect(rule({ ...grey, at: NOW + 60_000 }, ann)).toBe('it is from the future');
  });
});

describe('C7, T1: the next entry of the log', () => {
  const entries: Entry[] = [];
  const known = (drafts: readonly Parameters<typeof placeEntry>[1][], at = NOW): Registry =>
    drafts.reduce((sum, draft) => applyEntry(sum, placeEntry(sum, draft, at)), newRegistry('m'));
  const made = (revision: string) => ({ type: 'revision' as const, revision, author: ann });
  const put = (revision: string, to: Standing) => ({
    ...{ type: 'stage' as const, revision, from: to, to, statement: 's', signers: ['bob'] },
  });
  const name = (revision: string, alias = 'stable') => ({ type: 'alias' as const, alias, revision });
  const reason = (found: { ok: boolean; refusal?: { reason: string } }) => (found.ok ? 'ok' : found.refusal?.reason);

  it('four eyes: authors of the source or of the same files do not count', () => {
    const of = { from: A, method: 'dynamic', parameters: {} } as const;
    const smaller = { ...made(B), author: 'quantiser', made: of };
    const at = known([made(A), { ...made(A), author: 'zoe' }, smaller, put(B, LAST)]);
    const full = { ...statement(LAST, { stage: 'full' }, [rates(runAt(4, 300, 5, 60))]), revision: B };
    const missing = (...signers: string[]) => {
      const found = decideTransition(at, full, { signers, now: NOW });
      return found.ok && found.value;
    };
    expect(missing('bob', ann)).toBe(1);
    expect(missing('bob', 'zoe')).toBe(1);
    expect(missing('bob', 'cleo')).toMatchObject({ type: 'stage', to: { stage: 'full' } });
  });

  it('each signer of the files is an author; promises are never lowered', () => {
    const at = known([{ ...made(A), sla: { latencyMs: 100 } }, { ...made(B) }, put(B, { stage: 'grey' })]);
    const signed = { revision: A, author: 'bob', sla: { latencyMs: 200, memoryBytes: 5 } };
    const found = decideRevision(at, signed);
    if (!found.ok || !found.value) throw new Error('it is not taken');
    expect(found.value).toMatchObject({ author: 'bob', sla: { latencyMs: 100, memoryBytes: 5 } });
    const after = applyEntry(at, placeEntry(at, found.value, NOW + 5));
    expect(after.revisions[A]).toMatchObject({ author: ann, authors: ['bob'], registered: NOW, since: NOW });
    for (const author of [ann, 'bob'])
      expect(decideRevision(after, { revision: A, author })).toMatchObject({ value: undefined });
    expect(reason(decideRevision(at, { ...signed, worker: true }))).toBe('gate_closed');
    expect(reason(decideRevision(at, { revision: B, author: 'bob' }))).toBe('gate_closed');
  });

  it('a model takes revisions while its row has capacity for their entries', () => {
    const row = PROPERTIES_PER_VALUE_MAX * PROPERTY_CHARACTERS;
    const aliases = MODEL_ALIASES_MAX * 250;
    for (const [sla, most] of [
      [undefined, MODEL_REVISIONS_MAX],
      [{ latencyMs: 12_345.678901234567, memoryBytes: Number.MAX_SAFE_INTEGER, wordErrors: 0.12345678901234566 }, 200],
    ] as const) {
      let now = newRegistry('m');
      for (let number = 0; number <= most; number += 1) {
        const revision = `sha256:${number.toString(16).padStart(64, '0')}`;
        const found = decideRevision(now, { revision, author: 'a'.repeat(63), sla });
        if (!found.ok || !found.value) break;
        now = applyEntry(now, placeEntry(now, found.value, NOW));
      }
      const there = Object.keys(now.revisions);
      expect(there.length).toBeGreaterThan(100);
      if (!sla) expect(there).toHaveLength(most);
      // Worst case of each revision's row.
      const rollout = {
        ...{ state: 'stopped', since: NOW, reason: 'x'.repeat(300), method: 'dynamic' },
        tried: { dynamic: A, static: B },
      };
      const worst = Object.entries(now.revisions).map(([revision, one]) => [
        revision,
        { ...one, standing: { stage: 'canary', share: 0.05 }, ...(sla && { rollout }) },
      ]);
      expect(JSON.stringify(Object.fromEntries(worst)).length + aliases).toBeLessThan(row);
    }
  });

  it('a statement is for where the revision stands', () => {
    const at = known([made(A), put(A, { stage: 'grey' })]);
    const grey = statement({ stage: 'develop-verify' }, { stage: 'grey' }, forGrey());
    expect(reason(decideTransition(at, grey, { signers: [ann], now: NOW }))).toBe('stage_passed');
    expect(reason(decideTransition(at, { ...grey, revision: B }, { signers: [ann], now: NOW }))).toBe(
      'revision_unknown',
    );
    expect(reason(decideTransition(at, { ...grey, model: 'n' }, { signers: [ann], now: NOW }))).toBe(
      'revision_unknown',
    );
  });

  it('an old statement does not lead a withdrawn revision on again', () => {
    const again = known([made(A)], NOW + 1);
    const grey = statement({ stage: 'develop-verify' }, { stage: 'grey' }, forGrey());
    expect(reason(decideTransition(again, grey, { signers: [ann], now: NOW + 2 }))).toBe('gate_closed');
    expect(reason(decideTransition(again, { ...grey, at: NOW + 1 }, { signers: [ann], now: NOW + 2 }))).toBe('ok');
  });

  it('one canary at a time', () => {
    const two = known([made(A), made(B), put(A, { stage: 'grey' }), put(B, LAST)]);
    expect(
      reason(decideTransition(two, statement({ stage: 'grey' }, CANARY, forCanary()), { signers: ['bob'], now: NOW })),
    ).toBe('gate_closed');
  });

  it('a revision with an alias is not retired, a stable one not withdrawn', () => {
    const full = known([made(A), put(A, { stage: 'full' }), name(A)]);
    for (const to of [{ stage: 'retired' }, { stage: 'develop-verify' }] as Standing[])
      expect(reason(decideTransition(full, statement({ stage: 'full' }, to), { signers: ['bob'], now: NOW }))).toBe(
        'gate_closed',
      );
    // Evidence of a missed promise does not move it either: the map would still name it while it is in the
    // first stage.
    const promised = known([{ ...made(A), sla: { latencyMs: 100 } }, put(A, { stage: 'full' }), name(A)]);
    const slow: Evidence = { kind: 'latency', tool: 't', sla: 200, windows: [200, 200, 200] };
    const back = statement({ stage: 'full' }, { stage: 'develop-verify' }, [slow]);
    expect(reason(decideTransition(promised, back, { signers: ['bob'], now: NOW }))).toBe('gate_closed');
    const beta = known([made(A), name(A, 'beta')]);
    const out = statement({ stage: 'develop-verify' }, { stage: 'retired' });
    expect(reason(decideTransition(beta, out, { signers: ['bob'], now: NOW }))).toBe('gate_closed');
    expect(reason(decideTransition(known([made(A)]), out, { signers: ['bob'], now: NOW }))).toBe('ok');
  });

  it('only a person retires a rollback target', () => {
    let now = newRegistry('m');
    const full = { stage: 'full' } as const;
    const next = { ...name(B), from: A };
    for (const [at, draft] of [made(A), put(A, full), name(A), made(B), put(B, full), next].entries())
      now = applyEntry(now, placeEntry(now, draft, NOW + at));
    const out = { ...statement(full, { stage: 'retired' }), at: NOW + 9 };
    const retire = (revision: string, ...signers: string[]) =>
      reason(decideTransition(now, { ...out, revision }, { signers, now: NOW + 9 }));
    expect(retire(A, FUNCTIONS)).toBe('gate_closed');
    expect(retire(A, 'bob')).toBe('ok');
    // A revision that was rolled back from is no rollback target.
    now = applyEntry(now, placeEntry(now, { ...name(A), from: B }, NOW + 9));
    expect(retire(B, FUNCTIONS)).toBe('ok');
  });

  it('an alias moves from its current revision, stable to full ones only', () => {
    const two = known([made(A), made(B), put(A, { stage: 'full' }), put(B, LAST), name(A)]);
    const move = (revision: string | undefined, from: string | undefined, alias = 'stable') =>
      reason(decideAlias(two, { alias, revision, from }));
    expect(move(B, A)).toBe('gate_closed');
    expect(move(undefined, A)).toBe('gate_closed');
    expect(move(B, B)).toBe('alias_moved');
    expect(move(B, undefined)).toBe('alias_moved');
    expect(move(A, A)).toBe('ok');
    expect(move(B, undefined, 'beta')).toBe('ok');
    expect(move(`sha256:${'c'.repeat(64)}`, undefined, 'beta')).toBe('revision_unknown');
    expect(move(undefined, B, 'beta')).toBe('ok');
  });

  it('a roll back knows where to', () => {
    const two = known([made(A), made(B), put(A, { stage: 'full' }), put(B, { stage: 'full' }), name(A)]);
    const moved = decideAlias(two, { alias: 'stable', revision: B, from: A });
    if (!moved.ok || !moved.value) throw new Error('it does not move');
    const after = applyEntry(two, placeEntry(two, moved.value, NOW));
    expect(after.aliases.stable).toEqual({ revision: B, since: NOW, before: A });
  });

  it('replays the state at any time, and detects a missing entry', () => {
    let now = newRegistry('m');
    for (const [at, draft] of [made(A), put(A, { stage: 'full' }), name(A)].entries()) {
      const next = placeEntry(now, draft, NOW + at);
      entries.push(next);
      now = applyEntry(now, next);
    }
    const upTo = (time: number) => entries.filter(({ at }) => at <= time).reduce(applyEntry, newRegistry('m'));
    expect(upTo(NOW + 1).revisions[A]?.standing).toEqual({ stage: 'full' });
    expect(upTo(NOW + 1).aliases).toEqual({});
    expect(upTo(NOW + 2)).toEqual(now);
    const [first, second, third] = entries as [Entry, Entry, Entry];
    expect(() => [first, third].reduce(applyEntry, newRegistry('m'))).toThrow();
    const bent = { ...second, signers: ['eve'] } as Entry;
    expect(() => [first, bent, third].reduce(applyEntry, newRegistry('m'))).toThrow();
  });

  it('time does not go back in it', () => {
    const first = placeEntry(newRegistry('m'), made(A), NOW);
    const known = applyEntry(newRegistry('m'), first);
    expect(placeEntry(known, made(B), NOW - 5_000).at).toBe(NOW);
  });
});
