// Loaded before every part (`--import`), so that a part never outlives the supervisor and needs no code of its own
// for that: in production the same entry files are stopped by SIGTERM alone, and here too.
//
// - Ctrl-C belongs to the supervisor, which stops the parts in order; a part that hears SIGINT ignores it.
// - The message `stop`, or the loss of the IPC channel (the supervisor died, however it died), becomes SIGTERM.
// - A part that has not finished within STOP_MS_MAX is ended together with its process group, which is how the
//   runtime that the edge starts below itself goes too.
import process from 'node:process';
import { isMainThread } from 'node:worker_threads';

/** A part that hangs while stopping may cost the supervisor this long, in milliseconds; the supervisor allows more. */
const STOP_MS_MAX = 2_500;

let stopping = false;

// Threads of a part load this file too; the process is watched by its first one.
if (isMainThread) wear();

function wear(): void {
  // What a part keeps is its owner's alone: the state folder holds keys, tokens and people's speech.
  process.umask(0o077);
  process.on('SIGINT', () => {});
  process.on('message', (message) => {
    if (message === 'stop') stop();
  });
  process.on('disconnect', stop);
  // The supervisor died before this line: its end of the channel was closed before anybody listened for that.
  if (process.connected === false) stop();
  // The supervisor may be gone while the part still says goodbye: a broken pipe is no reason to stop stopping.
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
  // Every part leads its own group (see supervise.ts). Where there are no groups, only the part itself can be ended.
  if (process.platform !== 'win32') {
    try {
      process.kill(-process.pid, 'SIGKILL');
    } catch {
      // Not a group leader: somebody started the part by hand.
    }
  }
  process.kill(process.pid, 'SIGKILL');
}
