import { describe, expect, it } from 'vitest';
import { refusalAhead } from '../../../edge/routing/constraints.ts';
import { finished, type RouteMemory, started } from '../../../edge/routing/memory.ts';
import { pick } from '../../../edge/routing/pick.ts';
import { publicText } from '../../../shared/refusal.ts';
import { agent, model, now, request, snapshot } from './fleet.ts';

const live = { models: [model({ live: true })] };
const none: RouteMemory = new Map();

/** Returns evenly spread numbers, reproducibly. */
function spread() {
  let at = 0;
  return () => {
    at = (at + 0.618_033_988_75) % 1;
    return at;
  };
}

describe('agents for live streams', () => {
  it('require agents that declare them', () => {
    const entries = [agent('deaf'), agent('hears', live)];
    const picked = pick(request({ live: true }), {
      snapshots: [snapshot(entries)],
      memory: none,
      now,
      random: Math.random,
    });
    expect(picked.ok && picked.value.map(({ entry }) => entry.description.agent)).toEqual(['hears']);
    const alone = pick(request({ live: true }), {
      snapshots: [snapshot([agent('deaf')])],
      memory: none,
      now,
      random: Math.random,
    });
    expect(alone).toMatchObject({
      ok: false,
      refusal: { reason: 'model_not_live', params: { model: 'reference-en' } },
    });
    // The cached candidates of a request without live audio do not serve a live one.
    const both = [snapshot([agent('deaf')])];
    expect(pick(request(), { snapshots: both, memory: none, now, random: Math.random }).ok).toBe(true);
    expect(pick(request({ live: true }), { snapshots: both, memory: none, now, random: Math.random }).ok).toBe(false);
    const unknown = pick(request({ live: true, model: 'other' }), {
      snapshots: [snapshot(entries)],
      memory: none,
      now,
      random: Math.random,
    });
    expect(unknown).toMatchObject({ ok: false, refusal: { reason: 'model_unknown' } });
    expect(pick(request(), { snapshots: [snapshot([agent('deaf')])], memory: none, now, random: Math.random }).ok).toBe(
      true,
    );
  });

  it('are suggested for another model, a few, in own zones only', () => {
    const named = (name: string, more: object = {}) => agent(name, { models: [model({ name, live: true })], ...more });
    const many = Array.from({ length: 10 }, (_, at) => named(`model-${at}`));
    const asked = request({ live: true, model: 'gpt-realtime' });
    const text = (refusal: ReturnType<typeof refusalAhead>) => (refusal ? publicText(refusal) : undefined);
    expect(text(refusalAhead(asked, [snapshot(many.slice(0, 2))], now))).toBe(
      'The model "gpt-realtime" does not exist here. Available: model-0, model-1.',
    );
    expect(text(refusalAhead(asked, [snapshot(many)], now))).toContain('model-7 and 2 more.');
    const names = { 'whisper-1': 'model-0', 'acme nova-3': 'model-0', other: 'elsewhere' };
    const release = { v: 1, generation: 1, models: {}, names } as const;
    expect(text(refusalAhead(asked, [{ ...snapshot(many.slice(0, 1)), release }], now))).toContain(
      'Available: model-0, whisper-1.',
    );
    const abroad = refusalAhead({ ...asked, zones: ['elsewhere'] }, [snapshot(many)], now);
    expect(text(abroad)).toBe('The model "gpt-realtime" does not exist here.');
    const deaf = refusalAhead(request({ live: true }), [snapshot([agent('deaf'), named('hears')])], now);
    expect(text(deaf)).toBe('The model "reference-en" does not serve live streams. Use one of: hears.');
  });

  it('T3: need a model of the right task', () => {
    const entries = [agent('both', { models: [model(), model({ name: 'voice-en', task: 'synthesize' })] })];
    const foreseen = (more: object) => {
      const refusal = refusalAhead(request(more), [snapshot(entries)], now);
      return refusal && [refusal.reason, publicText(refusal)];
    };
    expect(foreseen({ model: 'voice-en' })).toEqual([
      'model_unfit',
      'The model "voice-en" cannot serve this request: its task is "synthesize". Use one of: reference-en.',
    ]);
    expect(foreseen({ task: 'synthesize' })).toEqual([
      'model_unfit',
      'The model "reference-en" cannot serve this request: its task is "transcribe". Use one of: voice-en.',
    ]);
    expect(foreseen({ task: 'synthesize', model: 'voice-en' })).toBeUndefined();
    expect(foreseen({ task: 'infer', model: 'voice-en' })).toBeUndefined();
    const abroad = { model: 'voice-en', zones: ['elsewhere'] };
    expect(foreseen(abroad)?.[0]).toBe('model_unknown');
  });

  it('may be there in a moment: then nothing is foreseen', () => {
    expect(refusalAhead(request({ live: true }), [], now)).toBeUndefined();
    expect(refusalAhead(request({ live: true }), [snapshot([agent('hears', live)])], now)).toBeUndefined();
  });

  it('get streams in proportion to slots, reported or opened here since', () => {
    const entries = [
      agent('small', { ...live, slots: 2 }, { streams: 0 }),
      agent('large', { ...live, slots: 6 }, { streams: 0 }),
      agent('full', { ...live, slots: 2 }, { streams: 60 }),
    ];
    let memory = none;
    const random = spread();
    const opened = new Map<string, number>();
    for (let stream = 0; stream < 120; stream++) {
      const picked = pick(request({ live: true, session: `s${stream}` }), {
        snapshots: [snapshot(entries)],
        memory,
        now,
        random,
      });
      if (!picked.ok) throw new Error(picked.refusal.reason);
      const name = String(picked.value[0]?.entry.description.agent);
      memory = started(memory, name);
      opened.set(name, (opened.get(name) ?? 0) + 1);
    }
    expect(opened.get('full') ?? 0).toBeLessThan(30);
    const [small = 0, large = 0] = [opened.get('small'), opened.get('large')];
    expect(large / small).toBeGreaterThan(2);
    expect(large / small).toBeLessThan(4.5);
  });

  it('a stream that ended counts no more', () => {
    const entries = [agent('one', live, { streams: 0 }), agent('two', live, { streams: 0 })];
    let memory = none;
    for (let stream = 0; stream < 40; stream++) memory = started(memory, 'one');
    const choose = () => {
      const picked = pick(request({ live: true }), { snapshots: [snapshot(entries)], memory, now, random: () => 0 });
      return picked.ok && picked.value[0]?.entry.description.agent;
    };
    expect(choose()).toBe('two');
    for (let stream = 0; stream < 40; stream++) memory = finished(memory, 'one', { outcome: 'neutral', ms: 0, now });
    expect(choose()).toBe('one');
  });
});
