// `npm run dev`: runs the local stack and restarts it after each change of the source. Arguments are those of `npm start`.
import { type ChildProcess, spawn } from 'node:child_process';
import { watch } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { ROOT } from './root.ts';

/** Time in which successive changes cause one restart, ms; an editor writes a file in several steps. */
const SETTLE_MS = 300;
const SOURCES = ['edge', 'functions', 'infra', 'shared'];

let stack: ChildProcess | undefined;
let restarting: NodeJS.Timeout | undefined;
let leaving = false;

function start(): void {
  const main = path.join(ROOT, 'infra/local/main.ts');
  // The stack ends itself when this process is gone.
  const env = { ...process.env, AURICLE_LAUNCHER: String(process.pid) };
  stack = spawn(process.execPath, [main, ...process.argv.slice(2)], { cwd: ROOT, stdio: 'inherit', env });
  stack.once('exit', (code) => {
    stack = undefined;
    if (leaving) process.exit(code ?? 0);
  });
}

/** Starts the stack, after the running one has stopped. */
function restart(): void {
  if (leaving) return;
  if (stack === undefined) {
    start();
    return;
  }
  stack.once('exit', () => {
    if (!leaving) start();
  });
  stack.kill('SIGTERM');
}

for (const folder of SOURCES) {
  watch(path.join(ROOT, folder), { recursive: true }, (_, file) => {
    if (!file?.endsWith('.ts')) return;
    clearTimeout(restarting);
    restarting = setTimeout(restart, SETTLE_MS);
  });
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    leaving = true;
    if (stack === undefined) process.exit(0);
    stack.kill('SIGTERM');
  });
}

start();
