import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pick } from '../../../edge/routing/pick.ts';
import { inOrderOf } from '../../../edge/routing/sticky.ts';
import { agent, model, now, request, snapshot } from './fleet.ts';

const members = (count: number, slots = 4) => Array.from({ length: count }, (_, n) => ({ agent: `a-${n}`, slots }));
const keys = Array.from({ length: 2_000 }, (_, n) => `tenant\nmodel\nn:${n}`);
const firstOf = (key: string, all: ReturnType<typeof members>) => inOrderOf(key, all)[0]?.agent;

describe('A5 a sequence stays with its agent', () => {
  it('the order of agents does not matter', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 20 }), fc.infiniteStream(fc.nat()), (key, count, chance) => {
        const all = members(count);
        const mixed = [...all].sort(() => ((chance.next().value ?? 0) % 3) - 1);
        expect(inOrderOf(key, mixed)).toEqual(inOrderOf(key, all));
      }),
    );
  });

  it('when one goes only its own keys move, each to its second', () => {
    const all = members(7);
    const left = all.filter((one) => one.agent !== 'a-3');
    for (const key of keys) {
      const [first, second] = inOrderOf(key, all);
      expect(firstOf(key, left)).toBe(first?.agent === 'a-3' ? second?.agent : first?.agent);
    }
  });

  it('a newcomer’s keys keep their former first as second', () => {
    const all = members(8);
    const before = members(7);
    const moved = keys.filter((key) => firstOf(key, all) !== firstOf(key, before));
    expect(moved.length).toBeGreaterThan(0);
    for (const key of moved) expect(inOrderOf(key, all)[1]?.agent).toBe(firstOf(key, before));
  });

  it('keys are spread by slots', () => {
    const all = [...members(3), { agent: 'large', slots: 12 }];
    const share = keys.filter((key) => firstOf(key, all) === 'large').length / keys.length;
    expect(share).toBeGreaterThan(0.45);
    expect(share).toBeLessThan(0.55);
  });
});

describe('A5 the choice of an agent for a sequence', () => {
  const fleet = [agent('eu-1'), agent('eu-2'), agent('eu-3'), agent('eu-4')];
  const choose = (change: Parameters<typeof request>[0], entries = fleet, random = Math.random) => {
    const picked = pick(request({ sticky: 'n:7', task: 'infer', ...change }), {
      snapshots: [snapshot(entries)],
      memory: new Map(),
      now,
      random,
    });
    return picked.ok ? picked.value.map(({ entry }) => entry.description.agent) : picked.refusal.reason;
  };

  it('does not look at load or chance', () => {
    const busy = fleet.map(({ description }, n) => agent(description.agent, {}, { busy: n * 10, serviceMs: 1_000 }));
    for (const entries of [fleet, busy]) expect(choose({}, entries)).toEqual(choose({}));
  });

  it('names another agent second, and never more than the attempts allowed', () => {
    const chosen = choose({});
    expect(chosen).toHaveLength(2);
    expect(new Set(chosen).size).toBe(2);
  });

  it('A5 A9 a GPU that joins is first, and the agent before it second', () => {
    const cpu = agent('eu-1', { accelerator: 'cpu' });
    expect(choose({ class: 'realtime' }, [cpu, agent('eu-2', { accelerator: 'gpu' })])).toEqual(['eu-2', 'eu-1']);
  });

  it('differs between tenants, models and ids', () => {
    const firsts = (all: Parameters<typeof request>[0][]) => new Set(all.map((change) => choose(change)[0]));
    expect(firsts([...'abcdefgh'].map((tenant) => ({ tenant }))).size).toBeGreaterThan(1);
    expect(firsts([...'abcdefgh'].map((sticky) => ({ sticky }))).size).toBeGreaterThan(1);
  });

  it('C6 keeps the constraints: another zone is no candidate', () => {
    expect(choose({ zones: ['us'] })).toBe('residency_mismatch');
  });

  it('one sequence sees one revision while a canary grows (R7)', () => {
    const both = [agent('eu-1'), agent('eu-2', { models: [model({ stage: 'canary' })] })];
    for (const sticky of [...'abcdefghijklmnop']) {
      const shares = [0, 0.25, 0.5, 0.75, 1].map((canaryShare) => choose({ sticky, canaryShare }, both)[0]);
      expect([...shares].sort()).toEqual(shares);
    }
  });
});

describe('models that take tensors', () => {
  const entries = [agent('eu-1', { models: [model(), model({ name: 'gain', task: 'infer', languages: ['zxx'] })] })];
  const ask = (change: Parameters<typeof request>[0]) => {
    const picked = pick(request(change), { snapshots: [snapshot(entries)], memory: new Map(), now, random: () => 0 });
    return picked.ok ? 'picked' : picked.refusal.reason;
  };

  it('are all models; one without speech takes tensors only', () => {
    expect(ask({ task: 'infer' })).toBe('picked');
    expect(ask({ task: 'infer', model: 'gain' })).toBe('picked');
    expect(ask({ model: 'gain' })).toBe('model_unfit');
  });

  it('A2 C4 a language list admits language-free models, but no undeclared language', () => {
    expect(ask({ task: 'infer', model: 'gain', allowed: ['de'] })).toBe('picked');
    const unsaid = [agent('eu-1', { models: [model({ task: 'infer', languages: ['und'] })] })];
    const picked = pick(request({ task: 'infer', allowed: ['de'] }), {
      snapshots: [snapshot(unsaid)],
      memory: new Map(),
      now,
      random: () => 0,
    });
    expect(picked).toMatchObject({ refusal: { reason: 'language_forbidden' } });
  });
});
