import { it } from 'vitest';
import type { TestModel } from './test-models.ts';

/** Where engines are known to answer differently. */
export interface Answers {
  /** Status when values do not fill the shape that is given for them. */
  readonly unfilledShape: number;
  /** Status of a body that is not JSON. */
  readonly notJson: number;
  /** Whether a body, or what it unpacks to, may be refused for its size alone. */
  readonly largeBody: 'refused' | 'read';
  /** What becomes of a waiting request whose client went away. */
  readonly abandoned: 'dropped' | 'served';
  /** Whether a request that found the queue full counts as a rejection. */
  readonly rejection: 'counted' | 'forgotten';
  /** When a waiting request is known to be late: by the next decision, or nobody can say. */
  readonly lateness: 'at once' | 'whenever';
  /** What a request counts as that the network itself failed on. */
  readonly failure: 'failure' | 'success';
  /** When the answer to an unload comes: with the model gone, or nobody can say. */
  readonly unload: 'done' | 'whenever';
  /** Whether the index says which part an ensemble is down for. */
  readonly downReason: 'names the part' | 'unloaded';
  /** What an ensemble does when its new configuration does not fit its parts. */
  readonly misfit: 'keeps the old one' | 'goes down';
  /** When a configuration that came with a load ends. */
  readonly override: 'next load' | 'unload';
  /** Status of a load of a model that is not in the repository. */
  readonly unknownLoad: number;
  /** What a load says about a config.pbtxt that cannot be read, and its status. */
  readonly unreadable: { readonly status: number; readonly says: RegExp };
  /** What becomes of settings that only a GPU can honour, on a machine without one. */
  readonly gpuSettings: 'reported' | 'refused';
  /** What becomes of sequence ids, priorities and timeouts in a generate request. */
  readonly generateParameters: 'understood' | 'ignored';
  /** Status of a generate request with a value of another type. */
  readonly generateType: number;
  /** Status of a generate request that the network failed on. */
  readonly generateFailure: number;
  /** What loads a model again whose load has failed. */
  readonly retries: 'by itself' | 'on request';
  /** Counters of a model that was unloaded and loaded again. */
  readonly counters: 'go on' | 'start again';
}

/** The embedded engine's answers, which are the ones to wish for. */
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
  override: 'next load',
  unknownLoad: 404,
  unreadable: { status: 400, says: /line \d+: ModelConfig has no field 'max_bach_size'/ },
  gpuSettings: 'reported',
  generateParameters: 'understood',
  generateType: 400,
  generateFailure: 500,
  retries: 'by itself',
  counters: 'go on',
};

/**
 * What an implementation answers instead, and why. A difference that is not there fails the suite like any other; only
 * `whenever` is no expectation: the suite then takes either, because which one it is is a matter of time.
 */
export type Differences = { readonly [K in keyof Answers]?: { readonly answer: Answers[K]; readonly why: string } };

/** An engine that somebody started. */
export interface Started {
  /** Without a slash at the end. */
  readonly url: string;
  readonly metricsUrl: string;
  stop(): Promise<unknown>;
}

/** One whose repository is the suite's own. */
export interface Running extends Started {
  /** Puts a further model into the running engine's repository, or replaces it, without loading it. */
  put(models: Readonly<Record<string, TestModel>>): Promise<void>;
}

/** An engine that the suite can be run on. It starts with every model of `test-models.ts` loaded. */
export interface Implementation {
  readonly name: string;
  readonly differences: Differences;
  start(): Promise<Running>;
}

/** Declares a contract's tests for one implementation. `engine` may be called inside tests only. */
export type Contract = (implementation: Implementation, engine: () => Running) => void;

/** A test of something that engines do differently; where this one does, the test's name says why. */
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
