// Lock of a state folder: a file that names its holder. A dead holder is detected, and its remaining process
// groups are killed (such as the runtime below the edge).
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
  /** Distinguishes the holder from a later process with the same number, for example after a reboot. */
  mark: z.string(),
  url: z.string(),
  /** Process groups of the parts. */
  groups: z.array(z.number().int().positive()),
});

export type Holder = z.infer<typeof holder>;

export type StateLock = { note(groups: number[]): void; release(): void };

/** Takes the folder, or returns its holder. */
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
        // Replaced atomically: a partial file would name no holder.
        note: (groups) => {
          try {
            writeFileSync(`${file}.new`, JSON.stringify({ ...own, groups }), { mode: 0o600 });
            renameSync(`${file}.new`, file);
          } catch (error) {
            // The stack continues with an old note; the next start may then miss a process.
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
 * Makes the folder level by level: a recursive mkdir of Node never returns where the file system answers "not
 * found" to every try, as below /proc.
 */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  try {
    if (path.dirname(folder) !== folder) makeFolder(path.dirname(folder));
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A concurrent process made it; if it is a file, the next use fails with that.
    if (code === 'EEXIST' && statSync(folder).isDirectory()) return;
    if (code === undefined) throw error;
    throw new StartProblem(`cannot make the folder ${folder} (${code}): name another one with --state`);
  }
}

function readHolder(file: string): Holder | undefined {
  try {
    return holder.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    // Partly written by a killed holder, or removed meanwhile: there is no holder.
    return undefined;
  }
}

function isAlive(other: Holder): boolean {
  return exists(other.pid) && markOf(other.pid) === other.mark;
}

/** Kills a group without a living leader, which a killed part left; a group with a leader is not ours. */
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

/** Returns boot id and start time of a process where the system reports them (Linux), otherwise ''. */
function markOf(pid: number): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Fields after the command name, which may itself contain spaces; the start time is the 22nd of all.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie, uncollected in containers whose first process does not reap.
    return fields[0] === 'Z' ? 'dead' : `${boot} ${fields[19]}`;
  } catch {
    return '';
  }
}
