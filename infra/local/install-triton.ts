// Installation of Triton before the first engine starts on it, once for all pools and state folders.
import { fork } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import type { Installed } from '../pool/triton/install.ts';
import { ROOT } from './root.ts';
import { StartProblem } from './start-problem.ts';

/** Message of the installing process. */
export type InstallMessage = { doing: string } | { installed: Installed } | { problem: string };

/**
 * Folder of the installation, shared with `npm run test:triton` whatever the stack's folder: it has 275 MB.
 */
const tritonFolder = (): string => path.resolve(process.env.AURICLE_TRITON ?? path.join(ROOT, '.auricle/triton'));

/**
 * Returns the installed Triton. The first call downloads it and reports progress to `log`. An abort of
 * `signal` ends the installation and keeps its finished parts. Throws a one-line StartProblem, for example
 * without Python.
 */
export function ensureTriton(signal: AbortSignal, log: (line: string) => void): Promise<Installed> {
  const folder = tritonFolder();
  const child = fork(new URL('./part/install-triton.ts', import.meta.url), [], {
    cwd: ROOT,
    // Settings of pip and of proxies are in the user's own environment.
    env: { ...process.env, AURICLE_TRITON: folder },
    execArgv: ['--import', new URL('./leash.ts', import.meta.url).href],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    detached: process.platform !== 'win32',
  });
  const giveUp = () => child.connected && child.send('stop', () => {});
  signal.addEventListener('abort', giveUp, { once: true });
  const outcome = new Promise<Installed>((resolve, reject) => {
    let announced = false;
    child.on('message', (message: InstallMessage) => {
      if ('installed' in message) return resolve(message.installed);
      if ('problem' in message) return reject(new StartProblem(`--engine triton: ${message.problem}`));
      if (!announced) log(`triton: the first start installs it into ${folder} (275 MB), which takes a while`);
      announced = true;
      log(`triton: ${message.doing}`);
    });
    child.once('error', reject);
    child.once('exit', (code, by) => reject(new StartProblem(`the installation of Triton ended with ${by ?? code}`)));
  });
  return outcome.finally(() => signal.removeEventListener('abort', giveUp));
}
