import { readdir, readFile } from 'node:fs/promises';

/** Returns the command lines of processes that name a folder: a leash, its server, the models. */
export async function processesOf(folder: string): Promise<{ pid: number; command: string }[]> {
  const found: { pid: number; command: string }[] = [];
  for (const pid of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    // A zombie has no command line.
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes(folder)) found.push({ pid: Number(pid), command: command.replaceAll('\0', ' ') });
  }
  return found;
}

/** Shared memory of the Tritons that a process has started. */
export const sharedBy = async (pid: number) =>
  (await readdir('/dev/shm')).filter((name) => name.includes(`auricle_${pid}_`));
