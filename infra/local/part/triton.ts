// Engine of one pool as a real Triton, below this process, on the ports of the pool's engine.
import { rm } from 'node:fs/promises';
import process from 'node:process';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { convertRepository } from '../../pool/triton/models/generate.ts';
import { startTriton, type Triton } from '../../pool/triton/start.ts';
import { openLog } from '../logs.ts';
import { isFree } from '../ports.ts';

/** Time for a former Triton, whose part was killed, to release the ports, ms. */
const LEAVE_MS_MAX = 20_000;
/** Interval of port checks, ms. */
const LOOK_MS = 50;
/** Time for Triton to stop by itself, ms: less than a part has (leash.ts). */
const STOP_MS_MAX = 1_500;

/** Characters of start-up output in the report of a failed start. */
const LAST_CHARS = 2_000;

const http = Number(process.env.PORT);
const metrics = Number(process.env.METRICS_PORT);
const repository = process.env.DATA ?? '';

let triton: Triton | undefined;
let stopping = false;
process.on('SIGTERM', () => void stop());

await untilFree([http, metrics]);
// The repository is rebuilt at every start: the models may have changed.
await rm(repository, { recursive: true, force: true });
await convertRepository(process.env.MODELS ?? '', repository, process.env.AURICLE_MODEL_NAMES?.split(','));
triton = await start();
void triton.ended.then((code) => {
  if (stopping) return;
  console.error(`Triton ended with ${code ?? 'a signal'}`);
  process.exit(1);
});
process.send?.('ready');

/**
 * Starts Triton. A healthy start prints much that looks like trouble: missing CUDA, and tables wider than a
 * screen. That output goes into a file of its own; later warnings go to the common log.
 */
async function start(): Promise<Triton> {
  const { LOGS = '', LOG_NAME = '' } = process.env;
  const file = openLog(LOGS, LOG_NAME, undefined);
  const output = new PassThrough();
  file.follow(output);
  let last = '';
  let started = false;
  const trouble = (text: string) => text.split('\n').filter((line) => line !== '' && !/^I\d{4} /.test(line));
  try {
    const running = await startTriton({
      installed: JSON.parse(process.env.INSTALLED ?? ''),
      repository,
      ports: { http, metrics },
      onLog(text) {
        output.write(text);
        if (started) for (const line of trouble(text)) console.log(line);
        else last = (last + text).slice(-LAST_CHARS);
      },
    });
    started = true;
    return running;
  } catch (error) {
    const lines = last.split('\n').filter(Boolean).slice(1);
    console.error([...lines, (error as Error).message, `all it said is in ${file.file}`].join('\n'));
    process.exit(1);
  }
}

async function untilFree(ports: number[]): Promise<void> {
  const until = performance.now() + LEAVE_MS_MAX;
  while (!(await Promise.all(ports.map(isFree))).every(Boolean)) {
    if (performance.now() > until) throw new Error(`ports ${ports.join(' and ')} are in use`);
    await sleep(LOOK_MS);
  }
}

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  // Still starting: the server ends with this process.
  if (triton === undefined) process.exit(0);
  const { pid } = triton;
  // Triton's leash takes SIGALRM as "now" and still clears the server's remains.
  setTimeout(() => process.kill(pid, 'SIGALRM'), STOP_MS_MAX);
  await triton.stop();
  process.exit(0);
}
