import type { ChildProcess } from 'node:child_process';

/** The next message of a child that has this member. Rejects when the child ends before. */
export function next<T extends object>(child: ChildProcess, key: keyof T): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (code: number | null) => reject(new Error(`${child.spawnargs.join(' ')} ended with ${code}`));
    const look = (message: T) => {
      if (!(key in message)) return;
      child.off('message', look);
      child.off('exit', end);
      resolve(message);
    };
    child.on('message', look);
    child.once('exit', end);
  });
}
