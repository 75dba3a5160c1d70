// Before the first engine starts on Triton, Triton has to be there. Once for all pools and all state folders.
import { fork } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import type { Installed } from '../pool/triton/install.ts';
import { ROOT } from './root.ts';
import { StartProblem } from './start-problem.ts';

/** What the installing process tells this one. */
export type Told = { doing: string } | { installed: Installed } | { problem: string };

/** The same installation as of `npm run test:triton`, whatever the stack's own folder is: it has 275 MB. */
const tritonFolder = (): string => path.resolve(process.env.AURICLE_TRITON ?? path.join(ROOT, '.auricle/triton'));

/**
 * The installed Triton. The first time it is downloaded, which `say` hears about. When `signal` gives up, so does the
 * installation; what it had finished is kept. Throws StartProblem in one line, for example when there is no Python.
 */
export function ensureTriton(signal: AbortSignal, say: (line: string) => void): Promise<Installed> {
  const folder = tritonFolder();
  const child = fork(path.join(import.meta.dirname, 'part/install-triton.ts'), [], {
    cwd: ROOT,
    // Settings of pip and of proxies are in the person's own environment.
    env: { ...process.env, AURICLE_TRITON: folder },
    execArgv: ['--import', new URL('./leash.ts', import.meta.url).href],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    detached: process.platform !== 'win32',
  });
  const giveUp = () => child.connected && child.send('stop', () => {});
  signal.addEventListener('abort', giveUp, { once: true });
  const outcome = new Promise<Installed>((resolve, reject) => {
    let announced = false;
    child.on('message', (told: Told) => {
      if ('installed' in told) return resolve(told.installed);
      if ('problem' in told) return reject(new StartProblem(`--engine triton: ${told.problem}`));
      if (!announced) say(`triton: the first start installs it into ${folder} (275 MB), which takes a while`);
      announced = true;
      say(`triton: ${told.doing}`);
    });
    child.once('error', reject);
    child.once('exit', (code, by) => reject(new StartProblem(`the installation of Triton ended with ${by ?? code}`)));
  });
  return outcome.finally(() => signal.removeEventListener('abort', giveUp));
}
