import { describe, expect, it } from 'vitest';
import type { Engine } from '../../../infra/pool/agent/engine.ts';
import { createEngineWatch } from '../../../infra/pool/agent/watch.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok } from '../../../shared/result.ts';

/** An engine of which only readiness and shapes can be asked. */
function engineOf(state: { up: boolean; loaded: Set<string>; inputs?: string[] }): Engine {
  const down = no(refuse('engine_failed'));
  return {
    ready: async () => state.up,
    modelReady: async (model: string) => state.up && state.loaded.has(model),
    metadata: async () => ok({ inputs: state.inputs ?? ['AUDIO', 'AUDIO_LENGTH'], outputs: ['FRAMES', 'LOG_PROBS'] }),
    statistics: async (model: string) => (model === 'a' ? ok({ requests: 1, computeNs: 2, queueNs: 3 }) : down),
  } as unknown as Engine;
}

function begin(state: Parameters<typeof engineOf>[0]) {
  const told: string[] = [];
  const lines: string[] = [];
  const model = (name: string) => ({
    description: {
      name,
      task: 'transcribe' as const,
      languages: ['en'],
      revision: `sha256:${name.repeat(64)}`,
      precision: 'fp32' as const,
      stage: 'full' as const,
      loaded: 0,
    },
    recogniser: { model: name, frameSeconds: 0.04, decoder: { width: 3, begin: () => never() } },
  });
  const watch = createEngineWatch({
    engine: engineOf(state),
    models: ['a', 'b'].map(model),
    record: (event) => event.type === 'model.revision' && told.push(`${event.action} ${event.model}`),
    log: (event) => lines.push(event),
    agent: 'agent-1',
  });
  return { watch, told, lines };
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
    expect([names(watch), told]).toEqual([['a'], ['loaded a']]);
    state.loaded = new Set(['b']);
    await watch.look();
    expect([names(watch), told]).toEqual([['b'], ['loaded a', 'loaded b', 'unloaded a']]);
    expect([watch.model('a'), watch.model('b')?.description.name]).toEqual([undefined, 'b']);
  });

  it('keeps its models while the engine is away', async () => {
    const state = { up: true, loaded: new Set(['a']) };
    const { watch, told, lines } = begin(state);
    await watch.look();
    state.up = false;
    await watch.look();
    await watch.look();
    expect([watch.ready(), names(watch), told]).toEqual([false, ['a'], ['loaded a']]);
    state.up = true;
    await watch.look();
    expect(lines).toEqual(['engine-ready', 'model-loaded', 'engine-lost', 'engine-ready']);
  });

  it('does not serve a model that takes something else (A18)', async () => {
    const { watch } = begin({ up: true, loaded: new Set(['a']), inputs: ['TEXT'] });
    await watch.look();
    expect(names(watch)).toEqual([]);
  });

  it('leaves out the counters it cannot have', async () => {
    const { watch } = begin({ up: true, loaded: new Set(['a', 'b']) });
    await watch.look();
    expect([...(await watch.statistics()).keys()]).toEqual(['a']);
  });
});
