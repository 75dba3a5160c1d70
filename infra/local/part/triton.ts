// The engine of one pool as a real Triton, below this process, on the ports that the pool's engine has anyway.
import { rm } from 'node:fs/promises';
import process from 'node:process';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { convertRepository } from '../../pool/triton/models/generate.ts';
import { startTriton, type Triton } from '../../pool/triton/start.ts';
import { openLog } from '../logs.ts';
import { isFree } from '../ports.ts';

/** How long the Triton before this one, whose part was killed, may take to leave the ports, in milliseconds. */
const LEAVE_MS_MAX = 20_000;
/** Distance of two looks at them, in milliseconds. */
const LOOK_MS = 50;
/** How long Triton may take to stop by itself, in milliseconds: less than a part may (leash.ts). */
const STOP_MS_MAX = 1_500;

/** Of its start-up output, when it fails: so many characters from the end. */
const LAST_CHARS = 2_000;

const http = Number(process.env.PORT);
const metrics = Number(process.env.METRICS_PORT);
const repository = process.env.DATA ?? '';

let triton: Triton | undefined;
let stopping = false;
process.on('SIGTERM', () => void stop());

await untilFree([http, metrics]);
// Made anew each time: the models may have changed since.
await rm(repository, { recursive: true, force: true });
await convertRepository(process.env.MODELS ?? '', repository);
triton = await start();
void triton.ended.then((code) => {
  if (stopping) return;
  console.error(`Triton ended with ${code ?? 'a signal'}`);
  process.exit(1);
});
process.send?.('ready');

/**
 * A healthy start says much that looks like trouble: that there is no CUDA, and tables wider than a screen. So all of it
 * goes into a file of its own; what is said later and is no mere information is everybody's.
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
  // Triton's leash takes this for "now"; it still clears away what the server leaves.
  setTimeout(() => process.kill(pid, 'SIGALRM'), STOP_MS_MAX);
  await triton.stop();
  process.exit(0);
}
