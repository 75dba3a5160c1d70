import { MiB } from '../../../../shared/bytes.ts';
import { HEARTBEAT_MS } from '../../../../shared/pool/limits.ts';
import { readBounded } from '../../../../shared/read-bounded.ts';

/** Metrics of the engine: Triton's page has about 2 KiB for each loaded model. */
export const ENGINE_METRICS_BYTES = MiB;

/** A sample or a comment about one, of the names that Triton and the embedded engine give their own: none of the agent's. */
const OF_ENGINE = /^(?:# (?:HELP|TYPE) )?(?:nv|auricle_engine)_/;

/**
 * Reads the engine's own page of metrics, to stand below the agent's: one scrape shows both, taken at the same moment.
 * Resolves with undefined when the engine does not answer in time or too long. Never rejects.
 */
export function createEngineMetrics(url: string): () => Promise<string | undefined> {
  return async () => {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(HEARTBEAT_MS) });
      const page = response.ok ? await readBounded(response.body, ENGINE_METRICS_BYTES) : undefined;
      return page && ownLines(new TextDecoder().decode(page));
    } catch {
      return undefined;
    }
  };
}

export function ownLines(page: string): string {
  const kept = page.split('\n').filter((line) => OF_ENGINE.test(line));
  return kept.map((line) => `${line.trimEnd()}\n`).join('');
}
