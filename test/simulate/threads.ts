// Runs of scenarios on worker threads, one run after the other on each.
import os from 'node:os';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { ablations, ours, rivals } from './policies.ts';
import { type Run, run, type Scenario } from './run.ts';
import { scenarioNamed } from './scenarios.ts';

export interface Order {
  readonly scenario: string;
  readonly policy: string;
  readonly seed: number;
  /** Members of the scenario that differ. */
  readonly change?: Partial<Pick<Scenario, 'seconds' | 'load' | 'lateMs'>>;
}

export const policies = [ours, ...rivals, ...ablations];

export function runOrder({ scenario, policy, seed, change }: Order): Run {
  const chosen = policies.find(({ name }) => name === policy);
  if (!chosen) throw new Error(`no policy ${policy}`);
  return run({ ...scenarioNamed(scenario), ...change }, chosen, seed);
}

/** Runs the orders on as many threads as there are cores; results are in the order of the orders. */
export async function runAll(orders: readonly Order[], onRun: (done: number) => void = () => {}): Promise<Run[]> {
  const results: Run[] = [];
  let next = 0;
  let done = 0;
  await Promise.all(
    Array.from({ length: Math.min(os.availableParallelism(), orders.length) }, async () => {
      const thread = new Worker(new URL(import.meta.url));
      while (next < orders.length) {
        const index = next++;
        thread.postMessage(orders[index]);
        results[index] = await new Promise<Run>((resolve, reject) => {
          thread.once('message', resolve);
          thread.once('error', reject);
        });
        thread.removeAllListeners('error');
        onRun(++done);
      }
      await thread.terminate();
    }),
  );
  return results;
}

if (!isMainThread && parentPort) {
  const port = parentPort;
  port.on('message', (order: Order) => port.postMessage(runOrder(order)));
}
