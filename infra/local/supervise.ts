// Supervisor of one part: starts it, detects readiness, restarts it after a death, stops it within a bound.
// It owns the part's process group; no other code may signal it.
import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { bundledEntry } from './bundle-entry.ts';
import type { Log } from './logs.ts';
import type { Part } from './part.ts';
import { type Deaths, decideRestart } from './restart.ts';
import { ROOT } from './root.ts';
import { StartProblem } from './start-problem.ts';

/** Bound from `stop` to the kill of the part's process group, ms. */
const STOP_MS_MAX = 3_000;
/** Bound on readiness of a part, ms (a cold disk and a busy CPU). */
const READY_MS_MAX_DEFAULT = 60_000;
/** Poll interval of a readiness URL, ms: parts that start need the CPU that more polls would take. */
const PROBE_MS = 120;
/** V8's semi-space, MiB; its default of 16 costs an idle stack 280 MB over all parts. */
const NURSERY_MIB = 2;

export type Supervised = {
  part: Part;
  /** Settles when the part is ready for the first time; rejects when it gives up. */
  started: Promise<void>;
  begin(): void;
  isReady(): boolean;
  pid(): number | undefined;
  kill(signal?: NodeJS.Signals): void;
  stop(): Promise<void>;
};

export function supervise(part: Part, log: Log, onLaunch: () => void): Supervised {
  let child: ChildProcess | undefined;
  let deaths: Deaths = { inARow: 0, everReady: false };
  let ready = false;
  let stopping = false;
  let waiting: NodeJS.Timeout | undefined;
  const started = Promise.withResolvers<void>();
  started.promise.catch(() => {});

  const readyMsMax = part.readyMsMax ?? READY_MS_MAX_DEFAULT;
  const start = () => {
    const born = Date.now();
    log.line('starting');
    const self = launch(part, log);
    child = self;
    onLaunch();
    const life = new AbortController();
    const markReady = () => {
      if (child !== self || ready) return;
      ready = true;
      log.line(`ready after ${((Date.now() - born) / 1_000).toFixed(1)} s`);
      started.resolve();
    };
    self.on('message', (message) => {
      if (message === 'ready') markReady();
    });
    if (part.ready !== 'message') void probe(part.ready.url, life.signal).then((up) => up && markReady());
    const late = setTimeout(() => {
      if (ready) return;
      log.line(`not ready within ${readyMsMax} ms: ending it`);
      endGroup(self);
    }, readyMsMax);
    self.on('error', (error) => log.line(`cannot be started: ${error.message}`));
    self.once('exit', (code, signal) => {
      clearTimeout(late);
      life.abort();
      endGroup(self);
      const decision = decideRestart(deaths, { wasReady: ready, lifeMs: Date.now() - born });
      ready = false;
      child = undefined;
      if (stopping) return;
      deaths = decision.deaths;
      const how = signal ?? `exit code ${code}`;
      if (!decision.again) {
        log.line(`died (${how}) ${deaths.inARow} times without ever becoming ready: giving up`);
        started.reject(new StartProblem(`${part.name} cannot start (${how}): see ${log.file}`));
        return;
      }
      log.line(`died (${how}): starting again in ${decision.waitMs} ms`);
      waiting = setTimeout(start, decision.waitMs);
    });
  };

  return {
    part,
    started: started.promise,
    begin: start,
    isReady: () => ready,
    pid: () => child?.pid,
    kill: (signal = 'SIGKILL') => void child?.kill(signal),
    async stop() {
      if (stopping) return;
      stopping = true;
      clearTimeout(waiting);
      started.reject(new Error(`${part.name} was stopped`));
      if (child) await end(child);
      await log.close();
    },
  };
}

/** Lowered limits replace constants of single files, so that such a part runs the source, not the bundle. */
const isBundled = ({ entry, env }: Part): boolean => !path.isAbsolute(entry) && env.AURICLE_LIMITS === undefined;

function launch(part: Part, log: Log): ChildProcess {
  const bundled = isBundled(part) && existsSync(bundledEntry(part.entry));
  const preloaded = bundled
    ? [bundledEntry('infra/local/leash.ts')]
    : ['infra/local/leash.ts', ...(part.env.AURICLE_LIMITS === undefined ? [] : ['infra/local/lower-limits.ts'])];
  const child = fork(bundled ? bundledEntry(part.entry) : path.resolve(ROOT, part.entry), [], {
    cwd: ROOT,
    env: { ...inherited(process.env), ...part.env },
    execArgv: [
      '--enable-source-maps',
      `--max-semi-space-size=${NURSERY_MIB}`,
      ...preloaded.flatMap((file) => ['--import', pathToFileURL(path.resolve(ROOT, file)).href]),
    ],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // Its own process group: Ctrl-C reaches the supervisor alone, and the group dies as a whole.
    detached: process.platform !== 'win32',
  });
  if (child.stdout) log.follow(child.stdout);
  if (child.stderr) log.follow(child.stderr);
  return child;
}

/**
 * Inherited variables that any process needs. Credentials and settings of the user's shell stay out of the
 * stack.
 */
const INHERITED = [
  'PATH',
  'HOME',
  'TMPDIR',
  'TEMP',
  'TMP',
  'LANG',
  'TZ',
  'SystemRoot',
  'USERPROFILE',
  'NODE_EXTRA_CA_CERTS',
  // Not a setting of the app: faults of the local functions host (DIFFERENCES.md).
  'AURICLE_BLOB_EVENTS',
  'NODE_COMPILE_CACHE',
];

export function inherited(environment: NodeJS.ProcessEnv): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = environment[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

function end(child: ChildProcess): Promise<void> {
  return new Promise((settle) => {
    if (child.exitCode !== null || child.signalCode !== null) return settle();
    const late = setTimeout(() => endGroup(child), STOP_MS_MAX);
    child.once('exit', () => {
      clearTimeout(late);
      settle();
    });
    if (child.connected) child.send('stop', () => {});
    else child.kill('SIGTERM');
  });
}

/** Kills the part's children, above all the runtime of the edge. */
function endGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (process.platform === 'win32') {
    child.kill('SIGKILL');
    return;
  }
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The group is empty.
  }
}

async function probe(url: string, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    try {
      const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(2_000)]) });
      await response.body?.cancel();
      if (response.ok) return true;
    } catch {
      // The part does not listen yet.
    }
    await sleep(PROBE_MS);
  }
  return false;
}
