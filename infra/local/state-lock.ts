// One stack per state folder. The lock is a file that names its holder; a holder that died is noticed, and what its
// hard death may have left behind (the runtime below the edge, in the edge's process group) is ended.
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { isStorageFull } from '../../shared/storage-full.ts';
import { StartProblem } from './start-problem.ts';

const holder = z.object({
  pid: z.number().int().positive(),
  /** Tells the holder from a later process that got the same number, for example after the machine was restarted. */
  mark: z.string(),
  url: z.string(),
  /** Process groups of the parts. */
  groups: z.array(z.number().int().positive()),
});

export type Holder = z.infer<typeof holder>;

export type StateLock = { note(groups: number[]): void; release(): void };

/** Takes the folder, or says who has it. */
export function lockState(state: string, url: string): StateLock | { heldBy: Holder } {
  makeFolder(state);
  const file = path.join(state, 'stack.json');
  const own: Holder = { pid: process.pid, mark: markOf(process.pid), url, groups: [] };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      const descriptor = openSync(file, 'wx', 0o600);
      writeSync(descriptor, JSON.stringify(own));
      closeSync(descriptor);
      return {
        // Replaced as a whole: half a file would look like nobody's.
        note: (groups) => {
          try {
            writeFileSync(`${file}.new`, JSON.stringify({ ...own, groups }), { mode: 0o600 });
            renameSync(`${file}.new`, file);
          } catch (error) {
            // A stack that goes on with an old note is better than none: the next start may miss a process.
            if (!isStorageFull(error)) throw error;
            console.error(`storage is full: ${state} takes nothing more`);
          }
        },
        release: () => rmSync(file, { force: true }),
      };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EACCES' || code === 'EROFS' || code === 'ENOSPC') {
        throw new StartProblem(`cannot write to the folder ${state} (${code}): name another one with --state`);
      }
      if (code !== 'EEXIST') throw error;
    }
    const other = readHolder(file);
    if (other && isAlive(other)) return { heldBy: other };
    for (const group of other?.groups ?? []) endOrphans(group);
    rmSync(file, { force: true });
  }
  throw new Error(`cannot take ${file}: another stack keeps starting there`);
}

/**
 * Level by level: asked for all levels at once, Node never comes back where the file system answers "not found" to
 * every try, as below /proc.
 */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  try {
    if (path.dirname(folder) !== folder) makeFolder(path.dirname(folder));
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Somebody else made it in this moment; when it is a file, the next use says so.
    if (code === 'EEXIST' && statSync(folder).isDirectory()) return;
    if (code === undefined) throw error;
    throw new StartProblem(`cannot make the folder ${folder} (${code}): name another one with --state`);
  }
}

function readHolder(file: string): Holder | undefined {
  try {
    return holder.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    // Half written when its holder was killed, or gone again: nobody holds it.
    return undefined;
  }
}

function isAlive(other: Holder): boolean {
  return exists(other.pid) && markOf(other.pid) === other.mark;
}

/** A group that lives on without its leader is what a killed part left; one with a leader belongs to somebody else. */
function endOrphans(group: number): void {
  if (process.platform === 'win32' || exists(group) || !exists(-group)) return;
  process.kill(-group, 'SIGKILL');
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Boot and start time of a process where the system tells them (Linux), else nothing. */
function markOf(pid: number): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Fields after the command name, which may itself contain spaces; the start time is the 22nd of all.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Dead, but nobody has collected its exit code: happens in containers whose first process is not made for that.
    return fields[0] === 'Z' ? 'dead' : `${boot} ${fields[19]}`;
  } catch {
    return '';
  }
}
