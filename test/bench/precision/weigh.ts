import { fork } from 'node:child_process';
import path from 'node:path';

/** Returns a network's memory, bytes, measured in a process of its own. */
export function weigh(file: string, signal?: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const hold = path.join(import.meta.dirname, 'hold.ts');
    const child = fork(hold, [file], { execArgv: [], ...(signal && { signal }) });
    child.once('error', reject);
    child.once('message', (said) => resolve((said as { bytes: number }).bytes));
    child.once('exit', (code) => reject(new Error(`the process that holds ${file} ended with ${code}`)));
  });
}
