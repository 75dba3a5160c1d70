// Ends the children of a part when the part is gone, even by SIGKILL and without the supervisor, which would
// otherwise clean up.
import { spawn } from 'node:child_process';
import process from 'node:process';

/**
 * Starts a shell that waits for the end of a pipe whose other end only this process holds. The system closes
 * that end with the process; the shell then kills the process group. It needs no timer, no CPU and about a
 * megabyte. The part must lead its group (supervise.ts), and the shell must not be in it.
 */
export function holdLifeline(): void {
  if (process.platform === 'win32') return;
  const shell = spawn('/bin/sh', ['-c', 'read line; kill -s KILL -- "-$1"', 'lifeline', String(process.pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  shell.unref();
  // Held for life. The shell failing is no reason for the part to fail: the supervisor still cleans up.
  shell.on('error', () => {});
  shell.stdin?.on('error', () => {});
}
