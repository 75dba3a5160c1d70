import { it } from 'vitest';
import type { TestModel } from './test-models.ts';

/** Known differences between engines' answers. */
export interface Answers {
  /** Status of values that do not fill their shape. */
  readonly unfilledShape: number;
  /** Status of a body that is not JSON. */
  readonly notJson: number;
  /** A body, or its decompressed form, may be refused for its size alone. */
  readonly largeBody: 'refused' | 'read';
  /** Outcome of a waiting request whose client disconnected. */
  readonly abandoned: 'dropped' | 'served';
  /** A request refused by a full queue counts as a rejection. */
  readonly rejection: 'counted' | 'forgotten';
  /** Time at which an overdue waiting request is detected: at the next decision, or undefined. */
  readonly lateness: 'at once' | 'whenever';
  /** Counter of a request that failed in the network. */
  readonly failure: 'failure' | 'success';
  /** Time of the answer to an unload: once the model is gone, or undefined. */
  readonly unload: 'done' | 'whenever';
  /** The index names the step model that keeps an ensemble down. */
  readonly downReason: 'names the part' | 'unloaded';
  /** Reaction of an ensemble to a new configuration that does not fit its step models. */
  readonly misfit: 'keeps the old one' | 'goes down';
  /** Status of a load of a model that the repository lacks. */
  readonly unknownLoad: number;
  /** Status and text of a load with an unreadable config.pbtxt. */
  readonly unreadable: { readonly status: number; readonly says: RegExp };
  /** Treatment of GPU settings on a machine without a GPU. */
  readonly gpuSettings: 'reported' | 'refused';
  /** Treatment of sequence ids, priorities and timeouts in a generate request. */
  readonly generateParameters: 'understood' | 'ignored';
  /** Status of a generate request with a value of another type. */
  readonly generateType: number;
  /** Status of a generate request that failed in the network. */
  readonly generateFailure: number;
  /** Source of the figure of a model's memory; `unknown`: its backend reports none. */
  readonly memory: 'measured' | 'unknown';
  /** Counters of a model after an unload and a load. */
  readonly counters: 'go on' | 'start again';
}

/** Answers of the embedded engine, which are the preferred ones. */
const wished: Answers = {
  unfilledShape: 400,
  notJson: 400,
  largeBody: 'refused',
  abandoned: 'dropped',
  rejection: 'counted',
  lateness: 'at once',
  failure: 'failure',
  unload: 'done',
  downReason: 'names the part',
  misfit: 'keeps the old one',
  unknownLoad: 404,
  unreadable: { status: 400, says: /line \d+: ModelConfig has no field 'max_bach_size'/ },
  gpuSettings: 'reported',
  generateParameters: 'understood',
  generateType: 400,
  generateFailure: 500,
  memory: 'measured',
  counters: 'go on',
};

/**
 * Different answers of an implementation, with the reason. A listed difference that does not show fails the
 * suite; only `whenever` expects nothing: the suite then takes either, since timing decides.
 */
export type Differences = { readonly [K in keyof Answers]?: { readonly answer: Answers[K]; readonly why: string } };

/** A running engine. */
export interface Started {
  /** Address without a slash at the end. */
  readonly url: string;
  readonly metricsUrl: string;
  stop(): Promise<unknown>;
}

/** A running engine whose repository belongs to the suite. */
export interface Running extends Started {
  /** Puts a further model into the running engine's repository, or replaces it, without loading it. */
  put(models: Readonly<Record<string, TestModel>>): Promise<void>;
}

/** An engine under test. It starts with every model of `test-models.ts` loaded. */
export interface Implementation {
  readonly name: string;
  readonly differences: Differences;
  /** Longest start, ms. */
  readonly startMs: number;
  start(): Promise<Running>;
}

/** Declares a contract's tests for one implementation. `engine` may be called inside tests only. */
export type Contract = (implementation: Implementation, engine: () => Running) => void;

/** Declares a test of a known difference; where this engine differs, the test's name gives the reason. */
export function differing<K extends keyof Answers>(
  { differences }: Implementation,
  question: K,
  name: string,
  test: (expected: Answers[K]) => Promise<void>,
): void {
  const difference = differences[question];
  if (difference) it(`${name} — differs: ${difference.why}`, () => test(difference.answer));
  else it(name, () => test(wished[question]));
}
