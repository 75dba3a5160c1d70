// Check that the stack serves: the edge answers and every pool has joined its roster, seen from outside with
// a client's request, so that "ready" never means less than "works".
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { StartProblem } from './start-problem.ts';

/** Poll interval, and longest start of a stack, ms. */
const LOOK_MS = 100;
const SERVING_MS_MAX = 60_000;

const served = z.object({
  id: z.string(),
  pools: z.array(z.string()).optional(),
  task: z.string().optional(),
  hears: z.enum(['people', 'synthetic']).optional(),
  /** Model that a name stands for. */
  root: z.string().optional(),
});
const modelList = z.object({ data: z.array(served) });

/** A model as the edge lists it. */
export type Served = z.infer<typeof served>;

/** Returns the models that the edge lists. */
export async function readModels({ url, token }: { url: string; token: string }): Promise<Served[]> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
  return modelList.parse(await response.json()).data;
}

export async function waitUntilServing(
  url: string,
  token: string,
  poolNames: string[],
  signal: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + SERVING_MS_MAX;
  let last = 'nothing answered';
  while (Date.now() < deadline && !signal.aborted) {
    last = await look(url, token, poolNames);
    if (last === 'serving') return;
    await sleep(LOOK_MS);
  }
  throw new StartProblem(`the stack is not serving after ${SERVING_MS_MAX} ms: ${last}`);
}

async function look(url: string, token: string, poolNames: string[]): Promise<string> {
  try {
    const health = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2_000) });
    await health.body?.cancel();
    if (!health.ok) return `/healthz answers ${health.status}`;
    if (poolNames.length === 0) return 'serving';
    const get = (path: string) =>
      fetch(`${url}${path}`, {
        headers: { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(2_000),
      });
    const response = await get('/v1/models');
    if (!response.ok) return `/v1/models answers ${response.status}`;
    const joined = evaluateServing(await response.json(), poolNames);
    if (joined === 'serving') return joined;
    const pools = await get('/v1/pools');
    return pools.ok ? withReasons(joined, await pools.json()) : joined;
  } catch (error) {
    return error instanceof Error ? error.message : 'no answer';
  }
}

export function evaluateServing(body: unknown, poolNames: string[]): string {
  const list = modelList.safeParse(body);
  if (!list.success) return '/v1/models answers something else than a list of models';
  const joined = new Set(list.data.data.flatMap((model) => model.pools ?? []));
  const absent = poolNames.filter((name) => !joined.has(name));
  return absent.length === 0 ? 'serving' : `not in the roster yet: ${absent.join(', ')}`;
}

const refusedAgents = z.object({ refused: z.array(z.object({ pool: z.string(), why: z.string() })) });

/** Adds the roster's reason for each agent that it refuses. */
export function withReasons(joined: string, body: unknown): string {
  const refused = refusedAgents.safeParse(body).data?.refused ?? [];
  return [joined, ...refused.map(({ pool, why }) => `${pool}: ${why}`)].join('; ');
}
