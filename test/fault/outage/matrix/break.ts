// Carries out the fault of a scenario.
import { setTimeout as pause } from 'node:timers/promises';
import type { PartName } from '../../../../infra/local/part.ts';
import type { Stack } from '../../../../infra/local/stack.ts';
import { takeDown } from '../../streams/place.ts';
import type { Scenario } from './scenarios.ts';

/** Resolves at the end of the fault: parts run again, or the last one was killed. */
export async function breakParts(stack: Stack, { parts, fault }: Scenario): Promise<void> {
  if (fault.kind === 'killed') {
    for (const [index, part] of parts.entries()) {
      if (index > 0) await pause(fault.pauseSeconds * 1_000);
      stack.kill(part);
    }
    return;
  }
  const end = fault.kind === 'absent' ? await takeDown(stack, parts) : stop(stack, parts);
  await pause(fault.seconds * 1_000);
  end();
}

/** Stops the process groups: the runtime of the edge is a child of its part. */
function stop(stack: Stack, parts: readonly PartName[]): () => void {
  const pids = parts.map((part) => stack.pid(part)).filter((pid) => pid !== undefined);
  for (const pid of pids) process.kill(-pid, 'SIGSTOP');
  return () => {
    for (const pid of pids) process.kill(-pid, 'SIGCONT');
  };
}
