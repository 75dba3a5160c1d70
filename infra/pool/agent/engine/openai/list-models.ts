import { z } from 'zod';
import { HEARTBEAT_UNKNOWN_MS } from '../../../../../shared/pool/limits.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import { ENGINE_MS } from '../../settings/limits.ts';
import type { createEngineClient } from '../http.ts';
import { jsonOf } from './transcript.ts';

/** Statuses of a server that has no list of models. */
const UNLISTED = new Set([404, 405, 501]);

const list = z.object({ data: z.array(z.object({ id: z.string().min(1) })) });
const failed = (detail: string) => no(refuse('engine_failed', undefined, detail));

type Listed = Result<readonly string[]>;

interface ListingParts {
  readonly request: ReturnType<typeof createEngineClient>['request'];
  /** Ids that the settings name; empty: those that the server lists. */
  readonly named: readonly string[];
  readonly now: () => number;
  /** Time of the server's last answer to any request, epoch ms. */
  readonly answeredAt: () => number;
}

/**
 * Returns a function that lists the ids of a server's models; calls at the same time share one request. A server that
 * computes in its only thread lists nothing meanwhile, so a silent one keeps its list until its last answer is older than
 * the longest inference. Never rejects; the detail of a refusal names the failure.
 */
export function createListing({ request, named, now, answeredAt }: ListingParts): () => Promise<Listed> {
  let running: Promise<Listed> | undefined;
  let last: Listed | undefined;

  async function read(): Promise<Listed> {
    const signal = AbortSignal.timeout(HEARTBEAT_UNKNOWN_MS);
    try {
      const { status, body } = await request({ method: 'GET', path: '/models', signal });
      last = readList(status, body);
      return last;
    } catch (error) {
      const { code, name } = error as NodeJS.ErrnoException;
      if (code !== 'ABORT_ERR') return failed(code ?? name);
      return last && now() - answeredAt() < ENGINE_MS ? last : failed('timeout');
    }
  }

  function readList(status: number, body: Uint8Array): Listed {
    if (named.length > 0 && (status === 200 || UNLISTED.has(status))) return ok(named);
    if (status !== 200) return failed(`http_${status}`);
    const read = list.safeParse(jsonOf(body));
    return read.success ? ok(read.data.data.map(({ id }) => id)) : failed('no list of models');
  }

  return () => {
    running ??= read().finally(() => {
      running = undefined;
    });
    return running;
  };
}
