import { limits } from '../../../shared/limits.ts';
import type { ModelDescription } from '../../../shared/pool/description.ts';
import type { ServedModel } from './desk.ts';
import type { Engine, EngineStatistics } from './engine.ts';
import type { Log } from './log.ts';
import { modelTensors } from './recognise.ts';
import type { AgentEvent } from './record.ts';

export interface EngineWatchOptions {
  readonly engine: Engine;
  /** What the repository holds; it is served while the engine has it loaded. */
  readonly models: readonly ServedModel[];
  readonly record: (event: AgentEvent) => void;
  readonly log: Log;
  readonly agent: string;
}

/** Knows whether the engine answers and which models it has loaded. */
export function createEngineWatch({ engine, models, record, log, agent }: EngineWatchOptions) {
  let ready = false;
  let served = new Map<string, ServedModel>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;

  function tell(action: 'loaded' | 'unloaded', { name, revision }: ModelDescription) {
    record({ type: 'model.revision', agent, action, model: name, revision });
    log(`model-${action}`, { model: name, revision });
  }

  /** Loaded, and takes what the agent sends. The shape is asked for once per loading. */
  async function serves({ description: { name } }: ServedModel, signal: AbortSignal): Promise<boolean> {
    if (!(await engine.modelReady(name, signal))) return false;
    if (served.has(name)) return true;
    const metadata = await engine.metadata(name, signal);
    if (!metadata.ok) return false;
    const has = (names: string[], wanted: readonly string[]) => wanted.every((one) => names.includes(one));
    return has(metadata.value.inputs, modelTensors.inputs) && has(metadata.value.outputs, modelTensors.outputs);
  }

  async function look(): Promise<void> {
    const signal = AbortSignal.timeout(limits.heartbeatUnknownMs.value);
    const nowReady = await engine.ready(signal);
    if (nowReady !== ready) log(nowReady ? 'engine-ready' : 'engine-lost');
    ready = nowReady;
    // While the engine is away its models keep their place: a restart of it is not an unloading.
    if (!ready) return;
    const states = await Promise.all(models.map((model) => serves(model, signal)));
    const next = new Map(models.filter((_, i) => states[i]).map((model) => [model.description.name, model]));
    for (const [name, { description }] of next) if (!served.has(name)) tell('loaded', description);
    for (const [name, { description }] of served) if (!next.has(name)) tell('unloaded', description);
    served = next;
  }

  return {
    /** One look now; a look under way is shared. */
    look(): Promise<void> {
      looking ??= look().finally(() => {
        looking = undefined;
      });
      return looking;
    },
    start() {
      // Looks more often until the engine is there for the first time: a fresh pool should take work at once.
      const pause = ready ? limits.heartbeatMs.value : limits.heartbeatMs.value / 10;
      timer = setTimeout(() => void this.look().then(() => timer && this.start()), pause);
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
    ready: () => ready,
    model: (name: string) => served.get(name),
    async statistics(): Promise<ReadonlyMap<string, EngineStatistics>> {
      const signal = AbortSignal.timeout(limits.heartbeatMs.value);
      const names = [...served.keys()];
      const read = await Promise.all(names.map((name) => engine.statistics(name, signal)));
      return new Map(names.flatMap((name, i) => (read[i]?.ok ? [[name, read[i].value] as const] : [])));
    },
    descriptions: () => [...served.values()].map(({ description }) => description),
  };
}
