import { it } from 'vitest';
import type { TestModel } from './test-models.ts';

/** What an engine may lack; each absence carries the reason that the skipped test shows. */
export type Topic =
  | 'onnx'
  | 'json'
  | 'raw'
  | 'compression'
  | 'not honoured'
  | 'strict config'
  | 'lasting counters'
  | 'poisoned batch'
  | 'sequence refusal';

/** Where engines are known to answer differently; the embedded engine gives the sane answer. */
export interface Oddities {
  readonly badShape: number;
  readonly notJson: number;
  readonly unknownLoad: number;
  readonly loadFailed: number;
}

export interface Running {
  /** Without a slash at the end. */
  readonly url: string;
  readonly metricsUrl: string;
  /** Puts a further model into the running engine's repository, or replaces it, without loading it. */
  put(models: Readonly<Record<string, TestModel>>): Promise<void>;
  stop(): Promise<void>;
}

/** An engine that the suite can be run on. It starts with every model of `test-models.ts` loaded. */
export interface Implementation {
  readonly name: string;
  readonly lacks: Partial<Record<Topic, string>>;
  readonly oddities: Oddities;
  start(): Promise<Running>;
}

/** Declares a contract's tests for one implementation. `engine` may be called inside tests only. */
export type Contract = (implementation: Implementation, engine: () => Running) => void;

/** A test that an implementation may be unable to pass; the skip says why. */
export function where(implementation: Implementation, topic: Topic, name: string, test: () => Promise<void>): void {
  const reason = implementation.lacks[topic];
  if (reason === undefined) it(name, test);
  else it.skip(`${name} — skipped: ${reason}`, test);
}
