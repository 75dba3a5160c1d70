import { describe, expect, it } from 'vitest';
import type { Engine } from '../../../../infra/pool/agent/engine/engine.ts';
import type { EngineQueue } from '../../../../infra/pool/agent/engine/level.ts';
import { ENGINE_UNREACHABLE_POLLS, EngineWatch } from '../../../../infra/pool/agent/models/watch.ts';
import type { Speaker } from '../../../../infra/pool/agent/tts/speaker.ts';
import type { ModelDescription } from '../../../../shared/pool/description.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok } from '../../../../shared/result.ts';

/** An engine of which only readiness and shapes can be asked. */
function engineOf(state: {
  up: boolean;
  loaded: Set<string>;
  inputs?: string[];
  outputs?: string[];
  columns?: number;
  queues?: Record<string, EngineQueue[]>;
  reason?: string;
}): Engine {
  const tensor = (name: string, last = -1) => ({ name, shape: [-1, -1, last] });
  const down = no(refuse('engine_failed'));
  return {
    ready: async (_: AbortSignal, onFailure?: (reason: string) => void) => {
      if (!state.up) onFailure?.(state.reason ?? 'unknown');
      return state.up;
    },
    modelReady: async (model: string) => state.up && state.loaded.has(model),
    metadata: async () =>
      ok({
        inputs: (state.inputs ?? ['AUDIO', 'AUDIO_LENGTH']).map((name) => tensor(name)),
        outputs: state.outputs?.map((name) => tensor(name)) ?? [tensor('FRAMES'), tensor('LOG_PROBS', state.columns)],
      }),
    queues: async (model: string) => {
      if (!state.queues) return ok([{ model, levels: 4 }]);
      return state.queues[model] ? ok(state.queues[model]) : down;
    },
    statistics: async (model: string) => (model !== 'b' ? ok({ requests: 1, computeNs: 2, queueNs: 3 }) : down),
  } as unknown as Engine;
}

const describeModel = (name: string, task: 'transcribe' | 'synthesize', digest = name): ModelDescription => ({
  name,
  task,
  languages: ['en'],
  revision: `sha256:${digest.repeat(64)}`,
  precision: 'fp32',
  stage: 'full',
  loaded: 0,
});

/** Digests in the repository by model, for a test to change. */
function begin(
  state: Parameters<typeof engineOf>[0],
  digests: Record<string, string> = {},
  files = { changed: new Set<string>(), refused: new Set<string>(), onReload: () => {} },
) {
  const told: string[] = [];
  let reads = 0;
  const lines: string[] = [];
  const said: unknown[] = [];
  const model = (name: string) => ({
    description: describeModel(name, 'transcribe', digests[name]),
    recogniser: { model: name, frameSeconds: 0.04, decoder: { width: 3, begin: () => never() } },
    live: { model: `${name}-stream`, windowSamples: 4_800, hopSamples: 1_600 },
    unchanged: async () => !files.changed.has(name),
  });
  const watch = new EngineWatch({
    engine: engineOf(state),
    models: ['a', 'b'].map(model),
    async reload() {
      reads++;
      files.onReload();
      return ['a', 'b'].filter((name) => !files.refused.has(name)).map(model);
    },
    record: (event) =>
      event.type === 'model.revision' && told.push(`${event.action} ${event.model} ${event.revision.at(-1)}`),
    log(event, fields) {
      lines.push(fields?.detail === undefined ? event : `${event}: ${fields.detail}`);
      if (event === 'engine-unreachable') said.push(fields);
    },
    agent: 'agent-1',
  });
  return { watch, told, lines, fields: said, reads: () => reads };
}
const never = (): never => {
  throw new Error('not asked here');
};
const names = (watch: ReturnType<typeof begin>['watch']) => watch.descriptions().map(({ name }) => name);

describe('watching the engine', () => {
  it('serves what the engine has loaded, and records each change once (A21)', async () => {
    const state = { up: true, loaded: new Set(['a']) };
    const { watch, told } = begin(state);
    await watch.look();
    await watch.look();
    expect([names(watch), told]).toEqual([['a'], ['loaded a a']]);
    state.loaded = new Set(['b']);
    await watch.look();
    expect([names(watch), told]).toEqual([['b'], ['loaded a a', 'unloaded a a', 'loaded b b']]);
    expect([watch.revisions('a')[0], watch.revisions('b')[0]?.description.name]).toEqual([undefined, 'b']);
  });

  it('A21 records nothing of a poll that ends after the stop', async () => {
    const state = { up: true, loaded: new Set(['a']) };
    const { watch, told } = begin(state);
    const poll = watch.look();
    watch.stop();
    await poll;
    expect(told).toEqual([]);
  });

  it('T3: serves a voice when the engine takes text and gives sound', async () => {
    const state = { up: true, loaded: new Set(['a']), inputs: ['TEXT', 'VOICE', 'RATE'], outputs: ['AUDIO'] };
    const speaker: Speaker = { model: 'a', sampleRate: 16_000, speak: never };
    const lines: string[] = [];
    const look = async () => {
      const watch = new EngineWatch({
        engine: engineOf(state),
        models: [{ description: describeModel('a', 'synthesize'), speaker }],
        record: () => {},
        log: (event, fields) => lines.push(`${event}: ${fields?.detail}`),
        agent: 'agent-1',
      });
      await watch.look();
      return names(watch);
    };
    expect(await look()).toEqual(['a']);
    state.inputs = ['TEXT'];
    expect(await look()).toEqual([]);
    expect(lines).toContain('model-broken: it has no VOICE, RATE');
  });

  it('keeps its models while the engine is away', async () => {
    const state = { up: true, loaded: new Set(['a']) };
    const { watch, told, lines } = begin(state);
    await watch.look();
    state.up = false;
    await watch.look();
    await watch.look();
    expect([watch.ready(), names(watch), told]).toEqual([false, ['a'], ['loaded a a']]);
    state.up = true;
    await watch.look();
    expect(lines).toEqual(['engine-ready', 'model-loaded', 'engine-lost', 'engine-ready']);
  });

  it('logs that the engine was never found, with reason, ever more rarely', async () => {
    const state = { up: false, loaded: new Set(['a']), reason: 'ECONNREFUSED' };
    const { watch, lines, fields } = begin(state);
    const first = ENGINE_UNREACHABLE_POLLS;
    for (let look = 0; look < first * 5; look++) await watch.look();
    expect(lines).toEqual(Array(3).fill('engine-unreachable'));
    const reason = 'ECONNREFUSED';
    expect(fields).toEqual([first, first * 2, first * 4].map((count) => ({ reason, count })));
    // Once it was there, it is lost and no more.
    for (const up of [true, false, false]) await Promise.resolve(Object.assign(state, { up })).then(() => watch.look());
    expect(lines.slice(3)).toEqual(['engine-ready', 'model-loaded', 'engine-lost']);
  });

  it('C10 logs an engine that answers but is not ready as loading', async () => {
    const { watch, lines } = begin({ up: false, loaded: new Set(['a']), reason: 'http_400' });
    for (let look = 0; look < ENGINE_UNREACHABLE_POLLS; look++) await watch.look();
    expect(lines).toEqual(['engine-loading']);
  });

  it('does not serve a model that takes something else (A18)', async () => {
    const { watch, lines } = begin({ up: true, loaded: new Set(['a']), inputs: ['TEXT'] });
    await watch.look();
    await watch.look();
    expect(names(watch)).toEqual([]);
    expect(lines).toEqual(['engine-ready', 'model-broken: it has no AUDIO, AUDIO_LENGTH']);
  });

  it('does not serve a model with a vocabulary of another length (A18)', async () => {
    const { watch, lines } = begin({ up: true, loaded: new Set(['a']), columns: 4 });
    await watch.look();
    expect(names(watch)).toEqual([]);
    expect(lines).toContain('model-broken: LOG_PROBS has 4 columns, its vocabulary 3');
    const fitting = begin({ up: true, loaded: new Set(['a']), columns: 3 });
    await fitting.watch.look();
    expect(names(fitting.watch)).toEqual(['a']);
  });

  it('names the new revision after the engine has started again (A21)', async () => {
    const state = { up: true, loaded: new Set(['a', 'b']) };
    const digests: Record<string, string> = {};
    const { watch, told, reads } = begin(state, digests);
    await watch.look();
    await watch.look();
    expect(reads()).toBe(0);
    digests.a = 'c';
    state.up = false;
    await watch.look();
    state.up = true;
    await watch.look();
    await watch.look();
    expect(reads()).toBe(1);
    expect(told).toEqual(['loaded a a', 'loaded b b', 'unloaded a a', 'loaded a c']);
    expect(watch.descriptions()[0]?.revision).toBe(`sha256:${'c'.repeat(64)}`);
  });

  it('names the new revision of a model that was unloaded and loaded again (A21)', async () => {
    const state = { up: true, loaded: new Set(['a']) };
    const digests: Record<string, string> = {};
    const { watch, told } = begin(state, digests);
    await watch.look();
    state.loaded = new Set();
    await watch.look();
    digests.a = 'c';
    state.loaded = new Set(['a']);
    await watch.look();
    expect(told).toEqual(['loaded a a', 'unloaded a a', 'loaded a c']);
  });

  it('A15: withholds a changed model until its files are read again', async () => {
    const digests: Record<string, string> = {};
    const offered: (string | undefined)[] = [];
    const files = {
      changed: new Set<string>(),
      refused: new Set<string>(),
      onReload() {
        offered.push(...names(watch));
        files.changed.clear();
      },
    };
    const { watch, told, reads } = begin({ up: true, loaded: new Set(['a', 'b']) }, digests, files);
    await watch.look();
    await watch.look();
    expect(reads()).toBe(0);
    files.changed.add('a');
    digests.a = 'c';
    await watch.look();
    await watch.look();
    // Not while it is read, and the others all the time.
    expect([offered, reads(), names(watch)]).toEqual([['b'], 1, ['a', 'b']]);
    expect(told.slice(2)).toEqual(['unloaded a a', 'loaded a c']);
    // A refused folder is retried: its signature may arrive after its files.
    files.changed.add('a');
    files.refused.add('a');
    await watch.look();
    expect([names(watch), watch.revisions('a')[0], told.slice(4)]).toEqual([['b'], undefined, ['unloaded a c']]);
    files.refused.clear();
    await watch.look();
    expect([names(watch), told.slice(5)]).toEqual([['a', 'b'], ['loaded a c']]);
  });

  it('says which models hear live streams, while the engine has their other half (R1)', async () => {
    const state = { up: true, loaded: new Set(['a', 'b', 'a-stream']) };
    const digests: Record<string, string> = {};
    const { watch, told } = begin(state, digests);
    const live = () => watch.descriptions().map((description) => [description.name, description.live === true]);
    await watch.look();
    expect(live()).toEqual([
      ['a', true],
      ['b', false],
    ]);
    state.loaded.delete('a-stream');
    await watch.look();
    expect(live()[0]).toEqual(['a', false]);
    // Back again, it may be another one.
    digests.a = 'c';
    state.loaded.add('a-stream');
    await watch.look();
    expect(live()[0]).toEqual(['a', true]);
    expect(told).toEqual(['loaded a a', 'loaded b b', 'unloaded a a', 'loaded a c']);
  });

  it('leaves out the counters it cannot have', async () => {
    const { watch } = begin({ up: true, loaded: new Set(['a', 'b']) });
    await watch.look();
    expect([...(await watch.statistics()).keys()]).toEqual(['a']);
  });

  it('R14: reports the queue time of shared steps once, and of ensembles the rest', async () => {
    const [own, shared] = [
      { model: 'own', levels: 4 },
      { model: 'shared', levels: 4 },
    ];
    const { watch } = begin({
      up: true,
      loaded: new Set(['a', 'a-stream']),
      queues: { a: [own, shared], 'a-stream': [shared] },
    });
    await watch.look();
    expect(Object.fromEntries(await watch.statistics())).toEqual({
      a: { requests: 1, computeNs: 2 },
      'a-stream': { requests: 1, computeNs: 2 },
      own: { queueNs: 3 },
      shared: { queueNs: 3 },
    });
  });

  it('A2: reads the levels of loaded models, and serves none without configuration', async () => {
    const state: Parameters<typeof engineOf>[0] = { up: true, loaded: new Set(['a']), queues: {} };
    const { watch, lines } = begin(state);
    await watch.look();
    expect([names(watch), watch.levels('a')]).toEqual([[], 0]);
    expect(lines).toContain('model-broken: the engine does not describe it');
    const queue = (model: string, levels: number) => ({ model, levels });
    state.queues = { a: [queue('x', 4), queue('y', 3)] };
    await watch.look();
    expect([names(watch), watch.levels('a'), watch.levels('b')]).toEqual([['a'], 3, 0]);
    // It comes back with others.
    state.loaded = new Set();
    await watch.look();
    [state.loaded, state.queues] = [new Set(['a']), { a: [queue('x', 2)] }];
    await watch.look();
    expect([names(watch), watch.levels('a')]).toEqual([['a'], 2]);
  });
});
