// Rollouts of revisions that miss their promise.
import { describe, expect, it } from 'vitest';
import { decideRevision, decideTransition } from '../../../functions/registry/decide.ts';
import type { Evidence } from '../../../shared/registry/evidence.ts';
import { applyEntry, type Entry, newRegistry, placeEntry, type Registry } from '../../../shared/registry/registry.ts';
import { type Method, methods, sourceOf } from '../../../shared/registry/rollout.ts';
import { seeded } from '../../../shared/registry/seeded.ts';
import type { Sla } from '../../../shared/registry/sla.ts';
import { moveOf, type Standing } from '../../../shared/registry/stage.ts';
import type { GateStatement } from '../../../shared/registry/statement.ts';
import type { Result } from '../../../shared/result.ts';
import { runs } from '../../seeds.ts';
import { forCanary, forGrey, quality } from '../../shared/registry/people.ts';

const A = `sha256:${'a'.repeat(64)}`;
const digest = (number: number) => `sha256:${number.toString(16).padStart(64, '0')}`;
const FIRST: Standing = { stage: 'develop-verify' };
const sla: Sla = { latencyMs: 150, memoryBytes: 1_000, wordErrors: 0.09 };
const tool = 't';
const latency = (ms: number): Evidence => ({ kind: 'latency', tool, sla: 500, windows: [ms, ms, ms] });
const memory = (bytes: number): Evidence => ({ kind: 'memory', tool, bytes });
const grey = (ms = 100, bytes = 900, errors = 20): Evidence[] => [
  ...forGrey().filter(({ kind }) => kind !== 'latency' && kind !== 'quality'),
  latency(ms),
  memory(bytes),
  quality(errors),
];

/** A log written only by the decisions under test. */
class Log {
  known: Registry = newRegistry('m');
  readonly entries: Entry[] = [];
  now = 1_800_000_000_000;
  #ids = 0;

  write(decided: Result<Parameters<typeof placeEntry>[1] | number | undefined>): string {
    if (!decided.ok) return `${decided.refusal.reason}: ${decided.refusal.params?.rule}`;
    if (typeof decided.value !== 'object') return 'nothing';
    const entry = placeEntry(this.known, decided.value, this.now);
    this.entries.push(entry);
    this.known = applyEntry(this.known, entry);
    return entry.type === 'rollout' ? `${entry.state} ${entry.method ?? ''}`.trim() : entry.type;
  }

  statement(revision: string, to: Standing | 'here', evidence: readonly Evidence[], reason?: string): GateStatement {
    this.now += 1_000;
    const from = this.standing(revision);
    const id = (this.#ids++).toString(16).padStart(64, '0');
    const { now } = this;
    return {
      model: 'm',
      revision,
      id,
      from,
      to: to === 'here' ? from : to,
      at: now,
      evidence: [...evidence],
      ...(reason && { reason }),
    };
  }

  standing = (revision: string): Standing => this.known.revisions[revision]?.standing as Standing;
  rollout = (revision = A) => this.known.revisions[revision]?.rollout;
  add = (revision: string, promised: Sla | undefined = sla) =>
    this.write(decideRevision(this.known, { revision, author: 'ann', sla: promised }));
  made = (revision: string, method: Method, from = A, more = {}) =>
    this.write(
      decideRevision(this.known, {
        revision,
        author: 'worker',
        worker: true,
        made: { from, method, parameters: {} },
        ...more,
      }),
    );
  move = (revision: string, to: Standing, evidence: readonly Evidence[], signers = ['bob'], live: Evidence[] = []) =>
    this.write(decideTransition(this.known, this.statement(revision, to, evidence), { signers, now: this.now, live }));
  takeOver = (revision: string, people = ['bob'], reason: string | undefined = 'it is wanted') =>
    this.write(
      decideTransition(this.known, this.statement(revision, 'here', [], reason), { signers: people, now: this.now }),
    );
  cannot = (method: Method, revision = A) => {
    const evidence: Evidence[] = [
      { kind: 'quantise', tool, method, verdict: 'FAIL', facts: { problem: 'no weights' } },
    ];
    return this.write(
      decideTransition(this.known, this.statement(revision, 'here', evidence), {
        signers: [],
        workers: ['worker'],
        now: this.now,
      }),
    );
  };
}

const begin = (promised: Sla | undefined = sla) => {
  const log = new Log();
  log.add(A, promised);
  return log;
};
const TO_GREY: Standing = { stage: 'grey' };
const CANARY: Standing = { stage: 'canary', share: 0.01 };

describe('A15, A22: a promise that is missed at a gate', () => {
  it('dynamic is made first, then static, and then everything stands still', () => {
    const log = begin();
    expect(log.move(A, TO_GREY, grey(200))).toBe('making dynamic');
    expect(log.rollout()).toMatchObject({
      state: 'making',
      method: 'dynamic',
      reason: expect.stringContaining('latencyMs 200, promised 150'),
    });
    expect(log.made(digest(1), 'dynamic')).toBe('revision');
    expect(log.rollout()).toMatchObject({ state: 'trying', tried: { dynamic: digest(1) } });
    expect(log.known.revisions[digest(1)]).toMatchObject({ sla, made: { from: A, method: 'dynamic' } });
    expect(log.move(digest(1), TO_GREY, grey(160))).toBe('making static');
    expect(log.made(digest(2), 'static')).toBe('revision');
    expect(log.move(digest(2), TO_GREY, grey(100, 1_001))).toBe('stopped');
    expect(log.rollout()).toMatchObject({
      state: 'stopped',
      reason: expect.stringContaining('nothing is left to try'),
    });
    for (const one of [A, digest(1), digest(2)]) {
      expect(log.move(one, TO_GREY, grey())).toMatch(/^rollout_held: /);
    }
    expect(log.entries.reduce(applyEntry, newRegistry('m'))).toEqual(log.known);
  });

  it('a derived revision passes the same gates and settles its source', () => {
    const log = begin();
    log.move(A, TO_GREY, grey(200));
    log.made(digest(1), 'dynamic');
    expect(log.move(digest(1), TO_GREY, grey())).toBe('stage');
    expect(log.move(digest(1), CANARY, forCanary())).toBe('stage');
    expect(log.move(A, TO_GREY, grey())).toContain('it missed what was promised of it');
    log.known = applyEntry(
      log.known,
      placeEntry(
        log.known,
        { type: 'stage', revision: digest(1), from: CANARY, to: { stage: 'full' }, statement: 's', signers: [] },
        log.now,
      ),
    );
    expect(log.rollout()?.state).toBe('met');
  });

  it('any FAIL ends a derived revision and its traffic', () => {
    const log = begin();
    log.move(A, TO_GREY, grey(200));
    log.made(digest(1), 'dynamic');
    log.move(digest(1), TO_GREY, grey());
    log.move(digest(1), CANARY, forCanary());
    const crash: Evidence = { kind: 'stability', tool, streams: 500, crashes: 1 };
    const more: Standing = { stage: 'canary', share: 0.05 };
    // Evidence of live traffic, not of a signer.
    expect(log.move(digest(1), more, [], ['bob'], [crash])).toBe('making static');
    expect(log.standing(digest(1))).toEqual(FIRST);
    expect(log.move(digest(1), TO_GREY, grey())).toMatch(/^rollout_held: another one took its place/);
  });

  it('a withdrawal by live traffic ends it, too, by the functions’ signature', () => {
    const log = begin();
    log.move(A, TO_GREY, grey(200));
    log.made(digest(1), 'dynamic');
    log.move(digest(1), TO_GREY, grey());
    const crash: Evidence = { kind: 'stability', tool, streams: 500, crashes: 1 };
    expect(log.move(digest(1), FIRST, [crash], ['functions'])).toBe('making static');
    expect(log.standing(digest(1))).toEqual(FIRST);
    // A withdrawal for another reason has no further effect.
    log.made(digest(2), 'static');
    log.move(digest(2), TO_GREY, grey());
    expect(log.move(digest(2), FIRST, [], ['bob'])).toBe('stage');
    expect(log.rollout()).toMatchObject({ state: 'trying', method: 'static' });
  });

  it('only the awaited worker reports that nothing can be made', () => {
    const log = begin();
    expect(log.cannot('dynamic')).toBe('gate_closed: no rollout waits for it');
    log.move(A, TO_GREY, grey(200));
    expect(log.cannot('static')).toBe('gate_closed: no rollout waits for it');
    expect(log.cannot('dynamic')).toBe('making static');
    expect(log.cannot('static')).toBe('stopped');
    expect(log.rollout()).toMatchObject({ tried: { dynamic: null, static: null } });
  });

  it('missed word errors end the rollout, since fewer bits do not help', () => {
    const log = begin();
    expect(log.move(A, TO_GREY, grey(200, 900, 28))).toBe('stopped');
    expect(begin({ wordErrors: 0.09 }).move(A, TO_GREY, grey(200, 900, 28))).toBe('stopped');
  });

  it('inconclusive measurements and missing promises are no misses', () => {
    const log = begin();
    const two: Evidence = { kind: 'latency', tool, sla: 500, windows: [400, 400] };
    const evidence = grey().map((one) => (one.kind === 'latency' ? two : one));
    expect(log.move(A, TO_GREY, evidence)).toBe('gate_closed: "latency" is INCONCLUSIVE');
    expect(log.move(A, TO_GREY, grey(200), [])).toContain('gate_closed');
    expect(
      log.move(
        A,
        TO_GREY,
        grey().filter(({ kind }) => kind !== 'memory'),
      ),
    ).toContain('"memory" is missing');
    expect(begin().known.revisions[A]?.rollout).toBeUndefined();
    const free = new Log();
    free.write(decideRevision(free.known, { revision: A, author: 'ann' }));
    expect(free.move(A, TO_GREY, grey(200))).toBe('stage');
  });

  it('evidence against a lower promise does not open the gate', () => {
    const log = begin();
    expect(log.move(A, TO_GREY, grey(151))).toBe('making dynamic');
    expect(begin().move(A, TO_GREY, grey(150))).toBe('stage');
  });

  it('after a takeover with a reason nothing is derived automatically', () => {
    const log = begin();
    log.move(A, TO_GREY, grey(200));
    expect(log.takeOver(A, [])).toBe('nothing');
    expect(log.takeOver(A, ['functions'])).toBe('nothing');
    expect(log.takeOver(A, ['bob'], '')).toContain('needs a reason');
    expect(log.takeOver(A)).toBe('stage');
    expect(log.takeOver(A)).toContain('nothing to take over');
    expect(log.move(A, TO_GREY, grey(200))).toBe('stopped');
    expect(log.takeOver(A)).toBe('stage');
    expect(log.move(A, TO_GREY, grey())).toBe('stage');
  });

  it('a worker derives each method once, with the promise of the source', () => {
    const log = begin();
    const worker = { author: 'worker', worker: true };
    const no = (signed: object) => log.write(decideRevision(log.known, { revision: digest(1), ...worker, ...signed }));
    expect(no({})).toContain('makes nothing but');
    expect(log.made(digest(1), 'dynamic', digest(9))).toContain('not known here');
    expect(log.made(digest(1), 'dynamic', A, { sla: { latencyMs: 900 } })).toContain('promises something else');
    expect(log.made(digest(1), 'dynamic')).toBe('revision');
    expect(log.made(digest(2), 'dynamic')).toContain('was tried already');
    // No rollout waited for it, so it triggers nothing, and nothing is derived from it.
    expect(log.rollout()).toBeUndefined();
    expect(log.move(digest(1), TO_GREY, grey(200))).toBe('stopped');
  });
});

describe('A15: random histories', () => {
  const random = (seed: number) => {
    const next = seeded(seed);
    return <T>(all: readonly T[]): T => all[Math.floor(next() * all.length)] as T;
  };

  it('ends with one revision a method; a stop lasts until a person acts', () => {
    for (let seed = 0; seed < runs(200, 2_000); seed += 1) {
      const pick = random(seed);
      const log = begin();
      const making: string[] = [];
      let takeovers = 0;
      for (let step = 0; step < 40; step += 1) {
        const all = Object.keys(log.known.revisions);
        const one = pick(all);
        const stopped = log.rollout()?.state === 'stopped';
        const before = log.entries.length;
        const acts: (() => string)[] = [
          () =>
            log.move(
              one,
              pick([TO_GREY, CANARY]),
              pick([grey(), grey(200), grey(100, 2_000), grey(100, 900, 40), forCanary()]),
            ),
          () => log.made(digest(seed * 100 + step + 1), pick(methods)),
          () => log.cannot(pick(methods), one),
        ];
        const person = !stopped || pick([0, 0, 0, 0, 1]) === 1 ? () => log.takeOver(one) : undefined;
        const act = pick([...acts, ...(person ? [person] : [])]);
        const said = act();
        takeovers += act === person && said === 'stage' ? 1 : 0;
        if (said.startsWith('making')) making.push(`${sourceOf(log.known.revisions, one)} ${said}`);
        const forward = log.entries
          .slice(before)
          .some((entry) => entry.type === 'stage' && moveOf(entry.from, entry.to) === 'advance');
        if (stopped && act !== person && forward) expect(sourceOf(log.known.revisions, one)).not.toBe(A);
        if (stopped && act !== person) expect(log.rollout()?.state).toBe('stopped');
      }
      expect(new Set(making).size).toBe(making.length);
      expect(making.length).toBeLessThanOrEqual(methods.length);
      const ofRollouts = log.entries.filter(({ type }) => type === 'rollout');
      expect(ofRollouts.length).toBeLessThanOrEqual(
        methods.length + 1 + takeovers + Object.keys(log.known.revisions).length,
      );
      expect(log.entries.reduce(applyEntry, newRegistry('m'))).toEqual(log.known);
    }
  }, 60_000);
});
