// Preloaded into every part (`--import`), so that a part never outlives the supervisor and needs no code of
// its own for that: in production SIGTERM alone stops the same entry files, and here too.
//
// - Ctrl-C belongs to the supervisor, which stops the parts in order; a part ignores SIGINT.
// - The message `stop`, or the loss of the IPC channel (the supervisor died), becomes SIGTERM.
// - A part that has not finished within STOP_MS_MAX is killed together with its process group, which includes the
//   runtime that the edge starts below itself.
import process from 'node:process';
import { isMainThread } from 'node:worker_threads';

/** Longest stop of a part before it is killed, ms; the supervisor allows more. */
const STOP_MS_MAX = 2_500;

let stopping = false;

// Threads of a part load this file too; the main thread watches for the process.
if (isMainThread) wear();

function wear(): void {
  // Files of a part are private to its owner: the state folder holds keys, tokens and speech.
  process.umask(0o077);
  process.on('SIGINT', () => {});
  process.on('message', (message) => {
    if (message === 'stop') stop();
  });
  process.on('disconnect', stop);
  // The supervisor died before this line: no listener saw its end of the channel close.
  if (process.connected === false) stop();
  // The supervisor may die while the part shuts down: a broken pipe must not interrupt that.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}

function stop(): void {
  if (stopping) return;
  stopping = true;
  setTimeout(endGroup, STOP_MS_MAX).unref();
  if (process.listenerCount('SIGTERM') === 0) process.exit(0);
  process.emit('SIGTERM', 'SIGTERM');
}

function endGroup(): void {
  // Every part leads its own group (see supervise.ts). Without groups, only the part itself can be killed.
  if (process.platform !== 'win32') {
    try {
      process.kill(-process.pid, 'SIGKILL');
    } catch {
      // Not a group leader: the part was started by hand.
    }
  }
  process.kill(process.pid, 'SIGKILL');
}
