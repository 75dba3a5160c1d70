import { limits } from '../../../shared/limits.ts';
import type { ModelDescription } from '../../../shared/pool/description.ts';
import type { Engine, EngineCounts } from './engine.ts';
import { commonLevels, type EngineQueue } from './level.ts';
import type { Log } from './log.ts';
import { modelTensors } from './recognise.ts';
import type { AgentEvent } from './record.ts';
import type { ServedModel } from './served-model.ts';
import { speakTensors } from './speak/parameters.ts';

export interface EngineWatchOptions {
  readonly engine: Engine;
  /** What the repository holds; it is served while the engine has it loaded. */
  readonly models: readonly ServedModel[];
  /** What it holds now: asked for when the engine has started again, has loaded a model again, or when files have changed. */
  readonly reload?: () => Promise<readonly ServedModel[]>;
  /** Looks for models that failed to load, each time the watch looks at the engine. */
  readonly failures?: { look(): Promise<void> };
  readonly record: (event: AgentEvent) => void;
  readonly log: Log;
  readonly agent: string;
}

/** Said of a model whose tensors or configuration the engine does not tell. */
const UNTOLD = 'the engine does not describe it';

/** Knows whether the engine answers and which models it has loaded. */
export function createEngineWatch(options: EngineWatchOptions) {
  const { engine, record, log, agent, reload = async () => options.models } = options;
  let models = options.models;
  let ready = false;
  let wasReady = false;
  /** Models that were served once and are not loaded now. */
  const gone = new Set<string>();
  let served = new Map<string, ServedModel>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let stopped = false;

  function tell(action: 'loaded' | 'unloaded', { name, revision }: ModelDescription) {
    record({ type: 'model.revision', agent, action, model: name, revision });
    log(`model-${action}`, { model: name, revision });
  }

  /** What of a model does not fit what the agent sends and reads; `undefined` when all does. */
  async function findMisfit({ recogniser, speaker }: ServedModel, name: string, signal: AbortSignal) {
    const metadata = await engine.metadata(name, signal);
    if (!metadata.ok) return UNTOLD;
    if (!recogniser && !speaker) return undefined;
    const wanted = recogniser ? modelTensors : speakTensors;
    const { inputs, outputs } = metadata.value;
    const missing = [
      ...wanted.inputs.filter((name) => !inputs.some((tensor) => tensor.name === name)),
      ...wanted.outputs.filter((name) => !outputs.some((tensor) => tensor.name === name)),
    ];
    if (missing.length > 0) return `it has no ${missing.join(', ')}`;
    if (!recogniser) return undefined;
    const columns = outputs.find(({ name }) => name === 'LOG_PROBS')?.shape.at(-1) ?? -1;
    const { width } = recogniser.decoder;
    // A free dimension is compared at each answer.
    return columns >= 0 && columns !== width ? `LOG_PROBS has ${columns} columns, its vocabulary ${width}` : undefined;
  }

  /** Where requests wait at the engine, by the name of what is asked there. */
  const queues = new Map<string, readonly EngineQueue[]>();

  /** Why a model that is loaded is not served; said once per loading. */
  const misfits = new Map<string, string>();

  /** Loaded, and takes what the agent sends. Shape and queues are asked for once per loading: not when it served `before`. */
  async function serves(model: ServedModel, name: string, before: boolean, signal: AbortSignal): Promise<boolean> {
    if (!(await engine.modelReady(name, signal))) {
      misfits.delete(name);
      return false;
    }
    if (before) return true;
    const found = await engine.queues(name, signal);
    const misfit = found.ok ? await findMisfit(model, name, signal) : UNTOLD;
    if (found.ok) queues.set(name, found.value);
    if (misfit === undefined) return true;
    if (misfits.get(name) !== misfit) log('model-broken', { model: name, detail: misfit });
    misfits.set(name, misfit);
    return false;
  }

  /** The model as it is served now: whole, without its live half, or not at all. */
  async function judge(model: ServedModel, signal: AbortSignal): Promise<ServedModel | undefined> {
    const { name, revision } = model.description;
    const known = served.get(name);
    const before = known?.description.revision === revision;
    const [whole, live] = await Promise.all([
      serves(model, name, before, signal),
      model.live ? serves(model, model.live.model, before && known?.description.live === true, signal) : false,
    ]);
    if (!whole) return undefined;
    return live ? { ...model, description: { ...model.description, live: true } } : model;
  }

  /** Names at the engine of what is served, live halves included. */
  const namesIn = (models: ReadonlyMap<string, ServedModel>): ReadonlySet<string> =>
    new Set(
      [...models.values()].flatMap(({ description, live }) =>
        description.live && live ? [description.name, live.model] : [description.name],
      ),
    );

  async function findServed(): Promise<Map<string, ServedModel>> {
    const signal = AbortSignal.timeout(limits.heartbeatUnknownMs.value);
    const found = await Promise.all(models.map((model) => judge(model, signal)));
    return new Map(found.flatMap((model) => (model ? [[model.description.name, model] as const] : [])));
  }

  /** Names of models whose files have changed and which have not been read again since. */
  const changed = new Set<string>();

  /** An engine that starts or loads reads the repository again, so the agent does too, or it would name old revisions. */
  async function readAgain(): Promise<void> {
    models = await reload().catch(() => models);
    for (const { description } of models) changed.delete(description.name);
  }

  /** An engine loads in place without a word: a model whose files are others now is not offered as what they were. */
  async function withdrawChanged(): Promise<void> {
    const whole = await Promise.all(models.map(({ unchanged }) => unchanged?.() ?? true));
    for (const [at, { description }] of models.entries()) if (!whole[at]) changed.add(description.name);
    if (changed.size === 0) return;
    models = models.filter(({ description }) => !changed.has(description.name));
    served = new Map([...served].filter(([name]) => !changed.has(name)));
  }

  /** Looks in vain at an engine that was never ready, and at how many the next line is due. */
  let inVain = 0;
  let sayAt = limits.engineUnreachableLooks.value;

  /** An engine that starts beside the agent takes its time, so the first looks are silent; then each line takes twice as long. */
  function tellUnreachable(reason: string): void {
    inVain += 1;
    if (inVain < sayAt) return;
    sayAt *= 2;
    log('engine-unreachable', { reason, count: inVain });
  }

  async function look(): Promise<void> {
    let reason = 'unknown';
    const [nowReady] = await Promise.all([
      engine.ready(AbortSignal.timeout(limits.heartbeatUnknownMs.value), (why) => {
        reason = why;
      }),
      options.failures?.look(),
    ]);
    if (!nowReady && !wasReady) tellUnreachable(reason);
    if (nowReady !== ready) log(nowReady ? 'engine-ready' : 'engine-lost');
    const back = nowReady && !ready && wasReady;
    ready = nowReady;
    wasReady ||= ready;
    // While the engine is away its models keep their place: a restart of it is not an unloading.
    if (!ready) return;
    const before = served;
    await withdrawChanged();
    if (back || changed.size > 0) await readAgain();
    let next = await findServed();
    if ([...namesIn(next)].some((name) => gone.has(name))) {
      await readAgain();
      next = await findServed();
    }
    // The agent's outbox closes after the watch.
    if (stopped) return;
    const revisionIn = (map: typeof next, name: string) => map.get(name)?.description.revision;
    const old = [...before.values()].filter(
      ({ description: { name, revision } }) => revisionIn(next, name) !== revision,
    );
    const fresh = [...next.values()].filter(
      ({ description: { name, revision } }) => revisionIn(before, name) !== revision,
    );
    for (const { description } of old) tell('unloaded', description);
    for (const { description } of fresh) tell('loaded', description);
    const now = namesIn(next);
    for (const name of namesIn(before)) if (!now.has(name)) gone.add(name);
    for (const name of now) gone.delete(name);
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
      stopped = true;
      clearTimeout(timer);
      timer = undefined;
    },
    ready: () => ready,
    model: (name: string) => served.get(name),
    /** Priority levels that requests of a model have at the engine; 0 while it was not looked at. */
    levels: (name: string) => commonLevels(queues.get(name) ?? []),
    /** Requests and time of computing of what is served; time of waiting of the queues behind it, each once however many share it. */
    async statistics(): Promise<ReadonlyMap<string, EngineCounts>> {
      const signal = AbortSignal.timeout(limits.heartbeatMs.value);
      const asked = namesIn(served);
      const waiting = new Set([...asked].flatMap((name) => queues.get(name) ?? []).map(({ model }) => model));
      const names = [...new Set([...asked, ...waiting])];
      const read = await Promise.all(names.map((name) => engine.statistics(name, signal)));
      return new Map(
        names.flatMap((name, i) => {
          if (!read[i]?.ok) return [];
          const { requests, computeNs, queueNs } = read[i].value;
          return [[name, { ...(asked.has(name) && { requests, computeNs }), ...(waiting.has(name) && { queueNs }) }]];
        }),
      );
    },
    descriptions: () => [...served.values()].map(({ description }) => description),
  };
}
