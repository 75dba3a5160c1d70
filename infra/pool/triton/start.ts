import { type ChildProcess, spawn } from 'node:child_process';
import { get } from 'node:http';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { KiB } from '../../../shared/bytes.ts';
import type { Installed } from './install.ts';

/** Longest start of a Triton without a container: every instance is a process that imports ONNX Runtime. */
const TRITON_READY_MS = 120_000;
/** Longest delay of its stop by running inferences and open connections. */
const TRITON_DRAIN_S = 3;
/** Time from SIGTERM to SIGKILL: unloading a model takes Triton up to a second. */
const TRITON_STOP_S = 12;
/** Time after which its process group is killed from outside: over TRITON_STOP_S. */
const TRITON_KILL_MS = 15_000;
/** Tries of other ports when another process took the chosen ones in between. */
const TRITON_PORT_TRIES_MAX = 3;
/** Tail of its log in the message of a failure. */
const TRITON_LOG_CHARACTERS = 32 * KiB;

/**
 * Threads of its HTTP server, 8 by default. A load over HTTP blocks one with all of its connections until the model is
 * loaded (server#8958).
 */
const TRITON_HTTP_THREADS = 64;

const HOST = '127.0.0.1';
/** Distance of two looks, in milliseconds. */
const LOOK_MS = 50;

export interface StartOptions {
  readonly installed: Installed;
  /** The model repository, for Triton. */
  readonly repository: string;
  /** Models to load at the start; default all. */
  readonly models?: readonly string[];
  /** 0 or absent: a free one. */
  readonly ports?: { readonly http?: number; readonly grpc?: number; readonly metrics?: number };
  /** Gets the server's log, as it comes. */
  readonly onLog?: (text: string) => void;
}

export interface Triton {
  /** `http://…`, without a slash at the end. */
  readonly url: string;
  /** `host:port` */
  readonly grpc: string;
  readonly metricsUrl: string;
  /** Leads the process group of the server and its models. */
  readonly pid: number;
  /** Settles with the exit code (null: a signal) when the server ends, however that comes. */
  readonly ended: Promise<number | null>;
  /** Finishes what is in flight, within a bound, and ends everything it started. */
  stop(): Promise<void>;
}

async function freePorts(wanted: readonly number[]): Promise<number[]> {
  // All are held until all are known: the system would hand out the same one twice.
  const servers = wanted.map(() => createServer());
  const ports = await Promise.all(
    servers.map(
      (server, index) =>
        new Promise<number>((resolve, reject) => {
          if (wanted[index]) return resolve(wanted[index]);
          server.once('error', reject);
          server.listen(0, HOST, () => resolve((server.address() as { port: number }).port));
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function describeArguments(
  { installed, repository, models = ['*'] }: StartOptions,
  [http = 0, grpc = 0, metrics = 0]: number[],
  region: string,
) {
  return [
    `--model-repository=${repository}`,
    `--backend-directory=${installed.backends}`,
    `--cache-directory=${installed.caches}`,
    `--backend-config=python,shm-region-prefix-name=${region}`,
    '--model-control-mode=explicit',
    // One model that failed to load must not take the others from their callers.
    '--strict-readiness=false',
    `--http-thread-count=${TRITON_HTTP_THREADS}`,
    ...models.map((model) => `--load-model=${model}`),
    // No listener authenticates, so each binds to this machine; Triton's default is every address.
    `--http-address=${HOST}`,
    `--http-port=${http}`,
    `--grpc-address=${HOST}`,
    `--grpc-port=${grpc}`,
    `--metrics-address=${HOST}`,
    `--metrics-port=${metrics}`,
    '--allow-gpu-metrics=false',
    `--exit-timeout-secs=${TRITON_DRAIN_S}`,
  ];
}

/**
 * Starts Triton on this machine's loopback address and waits until every model is loaded. It ends with this process,
 * however that ends. Rejects with the server's own complaint.
 */
export async function startTriton(options: StartOptions): Promise<Triton> {
  const { http = 0, grpc = 0, metrics = 0 } = options.ports ?? {};
  const given = [http, grpc, metrics];
  for (let attempt = 1; ; attempt++) {
    try {
      return await launch(options, await freePorts(given));
    } catch (error) {
      const taken = /already in use|Unavailable - Socket|failed to start \w+ server/i.test(String(error));
      if (!taken || attempt === TRITON_PORT_TRIES_MAX || given.every(Boolean)) throw error;
    }
  }
}

async function launch(options: StartOptions, ports: number[]): Promise<Triton> {
  const { installed, onLog = () => {} } = options;
  const region = `auricle_${process.pid}_${ports[0]}_`;
  const python = path.join(installed.environment, 'bin/python');
  const leash = [path.join(import.meta.dirname, 'leash.py'), String(process.pid), String(TRITON_STOP_S), region];
  const child = spawn(python, [...leash, installed.server, ...describeArguments(options, ports, region)], {
    // A group of its own, so that Triton and the models' processes can be ended with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      // The models' Python finds its packages by the environment that is active.
      VIRTUAL_ENV: installed.environment,
      PATH: `${path.dirname(python)}:${process.env.PATH ?? ''}`,
      LD_LIBRARY_PATH: installed.libraries.join(':'),
      // For this leash; the models' Python does not read it (install.ts).
      PYTHONDONTWRITEBYTECODE: '1',
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-TRITON_LOG_CHARACTERS);
      onLog(text);
    });
  }
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', reject);
  });
  const url = `http://${HOST}:${ports[0]}`;
  const watch = new AbortController();
  const failed = ended.then((code) => `ended with ${code}`).finally(() => watch.abort());
  const up = await Promise.race([untilReady(url, watch.signal), failed]).catch(String);
  if (up !== true) {
    await end(child, ended);
    throw new Error(`Triton did not start: ${complaintIn(output) ?? up}`);
  }
  return {
    url,
    grpc: `${HOST}:${ports[1]}`,
    metricsUrl: `http://${HOST}:${ports[2]}/metrics`,
    pid: child.pid ?? 0,
    ended,
    stop: () => end(child, ended),
  };
}

/** Status of one look, on a connection of its own: Triton would wait for a kept one when it stops. */
const look = (url: string) =>
  new Promise<number>((resolve) => {
    const request = get(url, { agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    request.once('error', () => resolve(0));
  });

async function untilReady(url: string, signal: AbortSignal): Promise<true | string> {
  const until = performance.now() + TRITON_READY_MS;
  while (performance.now() < until && !signal.aborted) {
    if ((await look(`${url}/v2/health/ready`)) === 200) return true;
    await sleep(LOOK_MS);
  }
  return `not ready within ${TRITON_READY_MS} ms`;
}

/** Returns the error in Triton's log without its time and source. A missing GPU is none. */
function complaintIn(log: string): string | undefined {
  const errors = log.split('\n').filter((line) => /^(E\d{4} |error: )/.test(line) && !/cuda/i.test(line));
  const cause = errors.find((line) => line.includes('failed to load')) ?? errors.at(-1);
  return cause?.replace(/^E\d{4} [^\]]*\] /, '');
}

async function end(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  const gone = ended.then(
    () => true,
    () => true,
  );
  child.kill('SIGTERM');
  const waiting = new AbortController();
  const late = sleep(TRITON_KILL_MS, false, { signal: waiting.signal }).catch(() => false);
  if (!(await Promise.race([gone, late]))) killGroup(child.pid);
  waiting.abort();
  await gone;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has ended.
  }
}
