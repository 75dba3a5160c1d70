// Requests whose favourites drift: each model has its time, a few are used throughout, and any may be used once.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stack } from '../../../infra/local/stack.ts';
import { seeded } from '../../../shared/registry/seeded.ts';

/** Requests a second. */
const RATE = 9;
/** Width of a model's time, as a share of the whole. */
const WIDTH = 0.07;
/** Share of models that are used throughout, their weight, and that of a request out of time. */
const STEADY_EACH = 10;
const STEADY = 0.7;
const STRAY = 0.006;
/** Timeout of a request, longer than the wait of an agent. */
const ANSWER_MS = 70_000;

export interface Planned {
  /** Ms after the start. */
  readonly at: number;
  readonly model: string;
}

/** Returns seeded requests of so many seconds, in their order. */
export function planTraffic(models: readonly string[], seconds: number): Planned[] {
  const random = seeded(17);
  const weightOf = (index: number, now: number) => {
    if (index % STEADY_EACH === STEADY_EACH - 1) return STEADY;
    const off = (now - index / (models.length - 1)) / WIDTH;
    return STRAY + Math.exp(-off * off);
  };
  const planned: Planned[] = [];
  for (let at = 0; at < seconds * 1_000; at += (-Math.log(1 - random()) * 1_000) / RATE) {
    const weights = models.map((_, index) => weightOf(index, at / (seconds * 1_000)));
    planned.push({ at, model: models[draw(weights, random())] as string });
  }
  return planned;
}

/** Returns the index that a number of [0, 1) draws. */
function draw(weights: readonly number[], number: number): number {
  let left = number * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [index, weight] of weights.entries()) {
    left -= weight;
    if (left < 0) return index;
  }
  return 0;
}

export interface Request {
  readonly model: string;
  /** Epoch ms. */
  readonly at: number;
  readonly milliseconds: number;
  /** Reason of a failure. */
  readonly failure: string | undefined;
}

/** Sends the requests at their times, whatever the answers take. */
export async function send(
  { url, token }: Pick<Stack, 'url' | 'token'>,
  planned: readonly Planned[],
  signal: AbortSignal,
): Promise<Request[]> {
  const body = JSON.stringify({ inputs: [{ name: 'INDEX', datatype: 'INT64', shape: [1], data: [0] }] });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const one = async (model: string): Promise<Request> => {
    const at = Date.now();
    const began = performance.now();
    const failure = await fetch(`${url}/v2/models/${model}/infer`, {
      ...{ method: 'POST', headers, body, signal: AbortSignal.timeout(ANSWER_MS) },
    })
      .then(async (answer) => {
        const text = await answer.text();
        return answer.ok ? undefined : `${answer.status} ${text.slice(0, 200)}`;
      })
      .catch((error: unknown) => String(error));
    return { model, at, milliseconds: performance.now() - began, failure };
  };
  const began = performance.now();
  const sent: Promise<Request>[] = [];
  for (const { at, model } of planned) {
    await sleep(Math.max(0, at - (performance.now() - began)), undefined, { signal });
    sent.push(one(model));
  }
  return Promise.all(sent);
}
