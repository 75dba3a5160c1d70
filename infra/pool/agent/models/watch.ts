import type { ModelDescription } from '../../../../shared/pool/description.ts';
import { HEARTBEAT_MS, HEARTBEAT_UNKNOWN_MS } from '../../../../shared/pool/limits.ts';
import { tensorsOf } from '../asr/recognise.ts';
import type { Engine } from '../engine/engine.ts';
import { commonLevels, type EngineQueue } from '../engine/level.ts';
import type { AgentEvent } from '../identity/record.ts';
import type { EngineCounts } from '../telemetry/engine-counters.ts';
import type { Log } from '../telemetry/log.ts';
import { speakTensors } from '../tts/parameters.ts';
import { engineModelOf, type ServedModel } from './served-model.ts';

/** Failed polls before an agent logs that it never reached its engine; each next line takes twice as many. */
export const ENGINE_UNREACHABLE_POLLS = 10;

export interface EngineWatchOptions {
  readonly engine: Engine;
  /** Models of the repository; each is served while the engine has it loaded. */
  readonly models: readonly ServedModel[];
  /**
   * Reads the repository again: after the engine has started or has loaded a model again, and when files have
   * changed.
   */
  readonly reload?: () => Promise<readonly ServedModel[]>;
  /** Looks for models that failed to load, each time the watch looks at the engine. */
  readonly failures?: { look(): Promise<void> };
  readonly record: (event: AgentEvent) => void;
  readonly log: Log;
  readonly agent: string;
}

/** Reason of an engine that answers and still loads its models (KServe: 400 at `/v2/health/ready`). */
const NOT_READY = 'http_400';

/** Said of a model whose tensors or configuration the engine does not tell. */
const UNDESCRIBED = 'the engine does not describe it';

/** Names at the engine of what is served, live halves included. */
const namesIn = (models: ReadonlyMap<string, ServedModel>): ReadonlySet<string> =>
  new Set(
    [...models.values()].flatMap((model) =>
      model.description.live && model.live ? [engineModelOf(model), model.live.model] : [engineModelOf(model)],
    ),
  );

/** Knows whether the engine answers and which models it has loaded. */
export class EngineWatch {
  readonly #options: EngineWatchOptions;
  #models: readonly ServedModel[];
  #ready = false;
  #wasReady = false;
  /** Models that were served once and are not loaded now. */
  readonly #gone = new Set<string>();
  /** Served models by their names at the engine. */
  #served = new Map<string, ServedModel>();
  /** Queues of the engine in which requests wait, by the name of the model in the request. */
  readonly #queues = new Map<string, readonly EngineQueue[]>();
  /** Causes for which loaded models are not served; logged once per loading. */
  readonly #misfits = new Map<string, string>();
  /** Names at the engine of models whose files have changed and which have not been read again since. */
  readonly #changed = new Set<string>();
  /** Failed looks at an engine that was never ready, and the count at which the next line is due. */
  #inVain = 0;
  #logAt = ENGINE_UNREACHABLE_POLLS;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #stopped = false;

  constructor(options: EngineWatchOptions) {
    this.#options = options;
    this.#models = options.models;
  }

  /** One look now; a look under way is shared. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Reads the models again and looks at the engine. */
  async reload(): Promise<void> {
    await this.#looking;
    await this.#readAgain();
    await this.look();
  }

  start() {
    // Looks more often until the engine is there for the first time: a fresh pool should take work at once.
    const pause = this.#ready ? HEARTBEAT_MS : HEARTBEAT_MS / 10;
    this.#timer = setTimeout(() => void this.look().then(() => this.#timer && this.start()), pause);
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  readonly ready = (): boolean => this.#ready;

  /** Returns the served revisions of a model. */
  revisions(name: string): ServedModel[] {
    return [...this.#served.values()].filter(({ description }) => description.name === name);
  }

  /** Priority levels that requests of a model have at the engine; 0 while it was not looked at. */
  readonly levels = (name: string) => commonLevels(this.#queues.get(name) ?? []);

  /** Requests and time of computing of what is served; time of waiting of the queues behind it, each once however many share it. */
  readonly statistics = async (): Promise<ReadonlyMap<string, EngineCounts>> => {
    const signal = AbortSignal.timeout(HEARTBEAT_MS);
    const served = namesIn(this.#served);
    const waiting = new Set([...served].flatMap((name) => this.#queues.get(name) ?? []).map(({ model }) => model));
    const names = [...new Set([...served, ...waiting])];
    const read = await Promise.all(names.map((name) => this.#options.engine.statistics(name, signal)));
    return new Map(
      names.flatMap((name, i) => {
        if (!read[i]?.ok) return [];
        const { requests, computeNs, queueNs } = read[i].value;
        return [[name, { ...(served.has(name) && { requests, computeNs }), ...(waiting.has(name) && { queueNs }) }]];
      }),
    );
  };

  readonly descriptions = () => [...this.#served.values()].map(({ description }) => description);

  #record(action: 'loaded' | 'unloaded', { name, revision }: ModelDescription) {
    this.#options.record({ type: 'model.revision', agent: this.#options.agent, action, model: name, revision });
    this.#options.log(`model-${action}`, { model: name, revision });
  }

  /** Returns how a model does not fit the requests and answers of the agent, or undefined when it does. */
  async #findMisfit({ recogniser, speaker }: ServedModel, name: string, signal: AbortSignal) {
    const metadata = await this.#options.engine.metadata(name, signal);
    if (!metadata.ok) return UNDESCRIBED;
    if (!recogniser && !speaker) return undefined;
    const wanted = recogniser ? tensorsOf(recogniser) : speakTensors;
    const { inputs, outputs } = metadata.value;
    const missing = [
      ...wanted.inputs.filter((name) => !inputs.some((tensor) => tensor.name === name)),
      ...wanted.outputs.filter((name) => !outputs.some((tensor) => tensor.name === name)),
    ];
    if (missing.length > 0) return `it has no ${missing.join(', ')}`;
    if (!recogniser || 'text' in recogniser) return undefined;
    const columns = outputs.find(({ name }) => name === 'LOG_PROBS')?.shape.at(-1) ?? -1;
    const { width } = recogniser.decoder;
    // A free dimension is compared at each answer.
    return columns >= 0 && columns !== width ? `LOG_PROBS has ${columns} columns, its vocabulary ${width}` : undefined;
  }

  /** Loaded, and takes what the agent sends. Shape and queues are asked for once per loading: not when it served `before`. */
  async #serves(model: ServedModel, name: string, before: boolean, signal: AbortSignal): Promise<boolean> {
    if (!(await this.#options.engine.modelReady(name, signal))) {
      this.#misfits.delete(name);
      return false;
    }
    if (before) return true;
    const found = await this.#options.engine.queues(name, signal);
    const misfit = found.ok ? await this.#findMisfit(model, name, signal) : UNDESCRIBED;
    if (found.ok) this.#queues.set(name, found.value);
    if (misfit === undefined) return true;
    if (this.#misfits.get(name) !== misfit) this.#options.log('model-broken', { model: name, detail: misfit });
    this.#misfits.set(name, misfit);
    return false;
  }

  /** The model as it is served now: whole, without its live half, or not at all. */
  async #judge(model: ServedModel, signal: AbortSignal): Promise<ServedModel | undefined> {
    const name = engineModelOf(model);
    const known = this.#served.get(name);
    const before = known?.description.revision === model.description.revision;
    const [whole, live] = await Promise.all([
      this.#serves(model, name, before, signal),
      model.live ? this.#serves(model, model.live.model, before && known?.description.live === true, signal) : false,
    ]);
    if (!whole) return undefined;
    return live ? { ...model, description: { ...model.description, live: true } } : model;
  }

  async #findServed(): Promise<Map<string, ServedModel>> {
    const signal = AbortSignal.timeout(HEARTBEAT_UNKNOWN_MS);
    const found = await Promise.all(this.#models.map((model) => this.#judge(model, signal)));
    return new Map(found.flatMap((model) => (model ? [[engineModelOf(model), model] as const] : [])));
  }

  /** An engine that starts or loads reads the repository again, so the agent does too, or it would name old revisions. */
  async #readAgain(): Promise<void> {
    const { reload, models } = this.#options;
    this.#models = reload ? await reload().catch(() => this.#models) : models;
    for (const model of this.#models) this.#changed.delete(engineModelOf(model));
  }

  /** An engine loads in place without a word: a model whose files are others now is not offered as what they were. */
  async #withdrawChanged(): Promise<void> {
    const whole = await Promise.all(this.#models.map(({ unchanged }) => unchanged?.() ?? true));
    for (const [at, model] of this.#models.entries()) if (!whole[at]) this.#changed.add(engineModelOf(model));
    if (this.#changed.size === 0) return;
    this.#models = this.#models.filter((model) => !this.#changed.has(engineModelOf(model)));
    this.#served = new Map([...this.#served].filter(([name]) => !this.#changed.has(name)));
  }

  /** An engine that starts beside the agent takes its time, so the first looks are silent; then each line takes twice as long. */
  #logUnreachable(reason: string): void {
    this.#inVain += 1;
    if (this.#inVain < this.#logAt) return;
    this.#logAt *= 2;
    const event = reason === NOT_READY ? 'engine-loading' : 'engine-unreachable';
    this.#options.log(event, { reason, count: this.#inVain });
  }

  async #look(): Promise<void> {
    let reason = 'unknown';
    const [nowReady] = await Promise.all([
      this.#options.engine.ready(AbortSignal.timeout(HEARTBEAT_UNKNOWN_MS), (why) => {
        reason = why;
      }),
      this.#options.failures?.look(),
    ]);
    if (!nowReady && !this.#wasReady) this.#logUnreachable(reason);
    if (nowReady !== this.#ready) this.#options.log(nowReady ? 'engine-ready' : 'engine-lost');
    const back = nowReady && !this.#ready && this.#wasReady;
    this.#ready = nowReady;
    this.#wasReady ||= this.#ready;
    // While the engine is away its models keep their place: a restart of it is not an unloading.
    if (!this.#ready) return;
    const before = this.#served;
    await this.#withdrawChanged();
    if (back || this.#changed.size > 0) await this.#readAgain();
    let next = await this.#findServed();
    if ([...namesIn(next)].some((name) => this.#gone.has(name))) {
      await this.#readAgain();
      next = await this.#findServed();
    }
    // The agent's outbox closes after the watch.
    if (this.#stopped) return;
    this.#replaceServed(before, next);
  }

  /** Records and logs which models are loaded and unloaded since `before`, and serves `next`. */
  #replaceServed(before: ReadonlyMap<string, ServedModel>, next: Map<string, ServedModel>): void {
    const isIn = (map: typeof before) => (model: ServedModel) =>
      map.get(engineModelOf(model))?.description.revision === model.description.revision;
    const old = [...before.values()].filter((model) => !isIn(next)(model));
    const fresh = [...next.values()].filter((model) => !isIn(before)(model));
    for (const { description } of old) this.#record('unloaded', description);
    for (const { description } of fresh) this.#record('loaded', description);
    const now = namesIn(next);
    for (const name of namesIn(before)) if (!now.has(name)) this.#gone.add(name);
    for (const name of now) this.#gone.delete(name);
    this.#served = next;
  }
}
