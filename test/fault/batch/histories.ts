// Runs simulated histories one after the other. Also the entry of a thread that runs a share of them.
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { findWrong } from './invariant.ts';
import { Simulation } from './simulation.ts';

export interface Share {
  readonly first: number;
  readonly last: number;
}

export interface Outcome {
  /** First history that violates the invariant, with the violations. */
  readonly wrong?: { readonly seed: number; readonly why: readonly string[] };
  /** Number of uploads by outcome. */
  readonly ends: Record<string, number>;
}

/** Histories between two yields to the event loop. */
const BREATH = 100;

export async function runHistories({ first, last }: Share): Promise<Outcome> {
  const ends: Record<string, number> = {};
  for (let seed = first; seed <= last; seed += 1) {
    const simulation = new Simulation(seed);
    const why = await live(simulation, 1 + (seed % 6));
    if (why.length > 0) return { wrong: { seed, why }, ends };
    for (const { upload } of simulation.sent) {
      const { status, refusal } = simulation.record(upload)?.state ?? {};
      const word = refusal?.reason ?? status ?? 'none';
      ends[word] = (ends[word] ?? 0) + 1;
    }
    if (seed % BREATH === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return { ends };
}

async function live(simulation: Simulation, clients: number): Promise<string[]> {
  try {
    await simulation.run((one) => {
      for (let client = 0; client < clients; client += 1) one.client(client);
    });
    return findWrong(simulation);
  } catch (error) {
    return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
}

if (!isMainThread && workerData?.share) parentPort?.postMessage(await runHistories(workerData.share as Share));
