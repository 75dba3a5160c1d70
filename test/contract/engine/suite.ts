import { afterAll, beforeAll, describe } from 'vitest';
import { batchingContract } from './batching.contract.ts';
import { cancellationContract } from './cancellation.contract.ts';
import { ensembleContract } from './ensemble.contract.ts';
import { errorsContract } from './errors.contract.ts';
import { generateContract } from './generate.contract.ts';
import { healthContract } from './health.contract.ts';
import type { Contract, Implementation, Running } from './implementation.ts';
import { lifecycleContract } from './lifecycle.contract.ts';
import { queueContract } from './queue.contract.ts';
import { repositoryContract } from './repository.contract.ts';
import { sequencesContract } from './sequences.contract.ts';
import { statisticsContract } from './statistics.contract.ts';
import { tensorsContract } from './tensors.contract.ts';

const contracts: readonly Contract[] = [
  healthContract,
  tensorsContract,
  statisticsContract,
  ensembleContract,
  batchingContract,
  queueContract,
  errorsContract,
  cancellationContract,
  sequencesContract,
  generateContract,
  repositoryContract,
  lifecycleContract,
];

/** Runs all tests of the promises that the agent relies on, against one implementation. */
export function runSuite(implementation: Implementation): void {
  // Tests that wait for a full queue may have to try again.
  describe(`engine contract: ${implementation.name}`, { timeout: 40_000 }, () => {
    let running: Running | undefined;
    beforeAll(async () => {
      running = await implementation.start();
    }, implementation.startMs);
    afterAll(() => running?.stop(), 30_000);
    for (const contract of contracts) contract(implementation, () => running!);
  });
}
