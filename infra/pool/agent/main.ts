import process from 'node:process';
import { startAgent } from './agent.ts';
import { lineFor, readSettings, SettingsError } from './settings/settings.ts';

// The decoder packages print a line for each damaged frame. The agent writes through its log only, so that a
// broken recording does not fill the disk.
console.error = () => {};
console.warn = () => {};

/** Prints what the operator has to correct: a line each, no stack. */
function giveUp(error: unknown): never {
  // Messages of the system name a path or an address; others may quote what they were working on and stay as they are.
  const isSystem = (one: unknown): one is NodeJS.ErrnoException => one instanceof Error && 'syscall' in one;
  if (!(error instanceof SettingsError) && !isSystem(error)) throw error;
  const lines = error instanceof SettingsError ? error.lines : [lineOf(error)];
  process.stderr.write(lines.map((line) => `agent: ${line}\n`).join(''));
  process.exit(2);
}

function lineOf(error: NodeJS.ErrnoException): string {
  const isModels = error.path !== undefined && error.path === process.env.AURICLE_MODELS;
  return isModels ? lineFor('AURICLE_MODELS', `cannot be read (${error.code})`) : error.message;
}

const agent = await Promise.resolve(process.env).then(readSettings).then(startAgent).catch(giveUp);
process.send?.({ ready: true, url: agent.url });

// The platform's one way to stop a pod; a second signal changes nothing.
process.on('SIGTERM', () => {
  agent.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
