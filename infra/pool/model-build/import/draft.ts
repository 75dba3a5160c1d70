import type { Flow, Graph } from '../archive/manifest.ts';
import type { Source } from '../archive/write-archive.ts';

/** Content of one source, before it becomes an archive. */
export interface Draft {
  readonly classes: readonly string[];
  readonly graphs: readonly Graph[];
  readonly flows: readonly Flow[];
  readonly settings: Readonly<Record<string, string>>;
  readonly parts: Readonly<Record<string, string>>;
  readonly sources: readonly Source[];
  /** Advice for the owner, in sentences. */
  readonly advice: readonly string[];
}

export const emptyDraft: Draft = {
  classes: [],
  graphs: [],
  flows: [],
  settings: {},
  parts: {},
  sources: [],
  advice: [],
};

/** Joins two drafts; settings and parts of the later one win. */
export function join(a: Draft, b: Draft): Draft {
  return {
    classes: [...new Set([...a.classes, ...b.classes])],
    graphs: [...a.graphs, ...b.graphs],
    flows: [...a.flows, ...b.flows],
    settings: { ...a.settings, ...b.settings },
    parts: { ...a.parts, ...b.parts },
    sources: [...a.sources, ...b.sources],
    advice: [...a.advice, ...b.advice],
  };
}
