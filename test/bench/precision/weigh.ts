import { fork } from 'node:child_process';
import path from 'node:path';

/** What a network needs in memory, bytes: in a process of its own, so that nothing of another one is counted. */
export function weigh(file: string, signal?: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const hold = path.join(import.meta.dirname, 'hold.ts');
    const child = fork(hold, [file], { execArgv: [], ...(signal && { signal }) });
    child.once('error', reject);
    child.once('message', (said) => resolve((said as { bytes: number }).bytes));
    child.once('exit', (code) => reject(new Error(`the process that holds ${file} ended with ${code}`)));
  });
}
