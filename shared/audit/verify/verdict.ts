// Findings about a bundle or a log, and exit codes.

/** Findings that one stage keeps: a fault of every entry need not be listed for every entry. */
const FINDINGS_MAX = 50;

/**
 * Exit codes. `witnessed`: valid, complete, and cosigned by a quorum. `no-export`: no input claims to be an
 * export, so nothing can be valid or invalid.
 */
export const verdicts = {
  witnessed: 0,
  unwitnessed: 10,
  incomplete: 20,
  diverged: 30,
  invalid: 40,
  'no-export': 50,
} as const;
export type Verdict = keyof typeof verdicts;

/** Stages in execution order. */
export const stages = [
  'manifest',
  'files',
  'checkpoints',
  'consistency',
  'inclusion',
  'links',
  'numbers',
  'outboxes',
  'disclosures',
  'derived',
] as const;
export type Stage = (typeof stages)[number];

/** A failed check. */
export interface Finding {
  readonly stage: Stage;
  readonly verdict: Verdict;
  readonly text: string;
}

export class Findings {
  readonly list: Finding[] = [];
  readonly #counts = new Map<Stage, number>();
  #worst: Verdict = 'witnessed';

  add(stage: Stage, verdict: Verdict, text: string): void {
    const count = (this.#counts.get(stage) ?? 0) + 1;
    this.#counts.set(stage, count);
    if (verdicts[verdict] > verdicts[this.#worst]) this.#worst = verdict;
    if (count <= FINDINGS_MAX) this.list.push({ stage, verdict, text });
  }

  get worst(): Verdict {
    return this.#worst;
  }

  /** Number of findings by stage, including those that are not stored. */
  get counts(): Readonly<Partial<Record<Stage, number>>> {
    return Object.fromEntries(this.#counts);
  }
}

export interface Report {
  readonly verdict: Verdict;
  readonly exit: number;
  /** A single sentence. */
  readonly summary: string;
  readonly findings: readonly Finding[];
  readonly findingCounts: Readonly<Partial<Record<Stage, number>>>;
  readonly facts: Facts;
}

/** Facts of the bundle, as far as they could be read. */
export interface Facts {
  readonly exportId?: string;
  readonly origin?: string;
  readonly tenant?: string;
  readonly tseq?: readonly [number, number];
  readonly index?: readonly [number, number];
  readonly entries?: number;
  readonly disclosed?: number;
  readonly erased?: number;
  readonly redaction?: string;
  readonly purpose?: string;
  /** Reports that the log, and not the manifest alone, confirms them. */
  readonly purposeShown?: boolean;
  readonly created?: string;
  readonly size?: number;
  readonly root?: string;
  readonly witnesses?: readonly { readonly name: string; readonly time: number }[];
  /** Reports whether the reader or the bundle named the trusted keys. */
  readonly trust?: 'policy given' | 'policy of the bundle';
}
