import { randomInt, randomUUID } from 'node:crypto';
import type { Tensor } from '../../../../../shared/kserve/tensor.ts';
import { type Reason, type Refusal, refuse } from '../../../../../shared/refusal.ts';
import { no, type Result } from '../../../../../shared/result.ts';

/** Open sequences of callers at one agent; engines have room for a few hundred at most. */
const SEQUENCES_MAX = 1_024;
/** Open sequences of one tenant: one tenant cannot take all slots. */
export const SEQUENCES_PER_TENANT_MAX = 128;
/** Requests of one sequence that wait for the one before; a faster client is refused. */
export const SEQUENCE_STEPS_MAX = 16;
/** Share of the engine's idle time: the agent ends an idle sequence before the engine forgets it. */
const SEQUENCE_IDLE_SHARE = 0.8;

/** One step for an engine. The agent makes the id: no two callers' sequences share one. */
export interface EngineStep {
  readonly id: string | number;
  readonly start: boolean;
  readonly end: boolean;
}

/** One step as a caller asks for it. */
export interface Step {
  readonly tenant: string;
  /** Digest of the caller within the tenant. */
  readonly caller?: string | undefined;
  /** Digest of the caller's own name for a process of it. */
  readonly session?: string | undefined;
  /** Name of the model as the caller knows it, and as the engine does. */
  readonly model: string;
  readonly engineModel: string;
  readonly version: string | undefined;
  readonly id: string | number;
  readonly start: boolean;
  readonly end: boolean;
  readonly inputs: readonly Tensor[];
}

/** The last step of a sequence that its caller did not end: inputs of zeros, in the shapes of the step before. */
export interface FinalStep {
  readonly model: string;
  readonly version: string | undefined;
  readonly inputs: readonly Tensor[];
  readonly step: EngineStep;
}

export interface SequencesOptions {
  /**
   * Time for which an engine stores the state of an idle sequence of the model, milliseconds. Must not
   * reject.
   */
  readonly engineIdleMs: (model: string) => Promise<number>;
  /** Tells the engine; must not reject. */
  readonly end: (ending: FinalStep) => Promise<void>;
  /** Calls back after so many milliseconds, unless cancelled. */
  readonly after: (milliseconds: number, act: () => void) => () => void;
}

interface Live {
  readonly key: string;
  readonly tenant: string;
  readonly model: string;
  readonly version: string | undefined;
  readonly engineId: string | number;
  readonly engineIdleMs: Promise<number>;
  /** Settles with its last step. */
  last: Promise<unknown>;
  /** Steps that wait or run. */
  steps: number;
  /** Its state is gone or unknown. */
  lost: boolean;
  /** Refuses every request after a second START, until the idle time has passed. */
  contested: boolean;
  shapes: readonly Omit<Tensor, 'bytes'>[];
  sizes: readonly number[];
  cancelIdle: () => void;
}

/** Refusals that an engine gives before a step begins: the state is what it was. */
const untouched: ReadonlySet<Reason> = new Set(['tensors_invalid', 'tensors_unsupported', 'version_unknown']);

/** Returns one key for each caller, session, revision and id. A number and its digits are two ids, as to an engine. */
const keyOf = ({ tenant, caller = '', session = '', engineModel, id }: Step) =>
  [tenant, caller, session, engineModel, typeof id, id].join('\n');

/**
 * The open sequences of callers. For each: START and END reach the engine once, steps run one after the
 * other, and the agent sends END when the caller vanishes, before the engine drops the state. A step with an
 * unknown outcome ends the sequence: the next one gets `sequence_unknown`, and the caller starts again.
 */
export class Sequences {
  readonly #options: SequencesOptions;
  readonly #live = new Map<string, Live>();
  /** Ends on their way to the engine. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: SequencesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#live.size;
  }

  /**
   * Runs a step when those before it have run. `run` must not reject. Adds to its refusals `sequence_unknown`,
   * `sequence_open` and `pool_busy`.
   */
  async step<T>(step: Step, run: (engine: EngineStep) => Promise<Result<T>>): Promise<Result<T>> {
    const found = this.#enter(step);
    if (!('live' in found)) return no(found);
    const { live, start } = found;
    live.cancelIdle();
    live.steps += 1;
    const mine = live.last.then(async (): Promise<Result<T>> => {
      if (live.lost) return no(live.contested ? open(step) : unknown(step));
      live.shapes = step.inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape }));
      live.sizes = step.inputs.map(({ datatype, shape, bytes }) => zeroBytes(datatype, shape, bytes));
      const outcome = await run({ id: live.engineId, start, end: step.end });
      this.#judge(live, step, start, outcome);
      return outcome;
    });
    live.last = mine;
    const outcome = await mine;
    live.steps -= 1;
    if (live.steps === 0 && !live.lost) await this.#armIdle(live);
    return outcome;
  }

  /** Ends every open sequence; resolves when the engine has got each END. */
  async close(): Promise<void> {
    for (const live of this.#live.values()) {
      if (live.contested) this.#forget(live);
      else this.#endByUs(live);
    }
    await Promise.all(this.#ending);
  }

  #enter(step: Step): { live: Live; start: boolean } | Refusal {
    const key = keyOf(step);
    const known = this.#live.get(key);
    if (known?.contested) return open(step);
    if (!step.start) {
      if (!known) return unknown(step);
      if (known.steps >= SEQUENCE_STEPS_MAX) return refuse('pool_busy', undefined, 'steps of a sequence');
      return { live: known, start: false };
    }
    // Two processes with one token look alike: the next step may be of either.
    if (known && step.session === undefined) {
      this.#contest(known);
      return open(step);
    }
    // A named session restarts its own sequence, as at Triton; steps of the one before that still wait find it lost.
    if (known) this.#endByUs(known);
    const { tenant, engineModel: model, version } = step;
    const own = [...this.#live.values()].filter((live) => live.tenant === tenant).length;
    if (this.#live.size >= SEQUENCES_MAX || own >= SEQUENCES_PER_TENANT_MAX) {
      return refuse('pool_busy', undefined, 'sequences');
    }
    const live: Live = {
      key,
      tenant,
      model,
      version,
      engineId: typeof step.id === 'number' ? randomInt(1, 2 ** 48 - 1) : randomUUID(),
      engineIdleMs: this.#options.engineIdleMs(model),
      last: known?.last.catch(() => {}) ?? Promise.resolve(),
      steps: 0,
      lost: false,
      contested: false,
      shapes: [],
      sizes: [],
      cancelIdle: () => {},
    };
    this.#live.set(key, live);
    return { live, start: true };
  }

  #judge(live: Live, step: Step, start: boolean, outcome: Result<unknown>): void {
    if (live.lost) return;
    if (outcome.ok) {
      if (step.end) this.#forget(live);
      return;
    }
    const { reason } = outcome.refusal;
    if (untouched.has(reason)) {
      if (start) this.#forget(live);
    } else if (reason === 'sequence_unknown') {
      this.#forget(live);
    } else {
      this.#endByUs(live);
    }
  }

  #forget(live: Live): void {
    live.lost = true;
    live.cancelIdle();
    if (this.#live.get(live.key) === live) this.#live.delete(live.key);
  }

  /** The engine hears of it when the steps that run have run. */
  #endByUs(live: Live): void {
    this.#forget(live);
    const { model, version, engineId } = live;
    const ending = live.last
      .catch(() => {})
      .then(() => {
        // Nothing has ever reached the engine.
        if (live.shapes.length === 0) return;
        const inputs = live.shapes.map((shape, i) => ({ ...shape, bytes: new Uint8Array(live.sizes[i] ?? 0) }));
        return this.#options.end({ model, version, inputs, step: { id: engineId, start: false, end: true } });
      })
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  /**
   * Ends a sequence that got a second START, and refuses its requests for the idle time, START included: a process that
   * begins again earlier would get the steps of the other one, which has not read a refusal yet.
   */
  #contest(live: Live): void {
    this.#endByUs(live);
    live.contested = true;
    this.#live.set(live.key, live);
    void live.engineIdleMs.then((idle) => {
      if (this.#live.get(live.key) !== live) return;
      live.cancelIdle = this.#options.after(idle * SEQUENCE_IDLE_SHARE, () => this.#forget(live));
    });
  }

  async #armIdle(live: Live): Promise<void> {
    const idle = (await live.engineIdleMs) * SEQUENCE_IDLE_SHARE;
    if (live.lost || live.steps > 0) return;
    live.cancelIdle();
    live.cancelIdle = this.#options.after(idle, () => this.#endByUs(live));
  }
}

const unknown = ({ id, model }: Pick<Step, 'id' | 'model'>): Refusal =>
  refuse('sequence_unknown', { sequence: id, model });

const open = ({ id, model }: Pick<Step, 'id' | 'model'>): Refusal => refuse('sequence_open', { sequence: id, model });

/** Bytes of a tensor of zeros; of texts, empty ones. */
function zeroBytes(datatype: Tensor['datatype'], shape: readonly number[], bytes: Uint8Array): number {
  return datatype === 'BYTES' ? 4 * shape.reduce((product, dim) => product * dim, 1) : bytes.byteLength;
}
