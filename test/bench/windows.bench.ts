// A13's windows in the agent against none, where the engine's dynamic batching alone forms the batches:
// `npm run bench -- windows [--seconds 10] [--rounds 3] [--urgent 8] [--long 0.8]` (arrivals a second).
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ROOT } from '../../infra/local/root.ts';
import { inputsOf, modelTensors } from '../../infra/pool/agent/asr/recognise.ts';
import { createDispatcher } from '../../infra/pool/agent/engine/dispatch.ts';
import { createKserveEngine } from '../../infra/pool/agent/engine/kserve.ts';
import { createWindowFeedback } from '../../infra/pool/agent/engine/window-feedback.ts';
import { MACRO_WINDOW_MS, MICRO_WINDOW_MS, noWindows, type Windows } from '../../infra/pool/agent/engine/windows.ts';
import type { RequestClass } from '../../shared/tenant/claims.ts';
import { randomOf } from '../fake/random.ts';
import { soundOf } from '../infra/model-build/listen.ts';
import { median, ratioFigures } from './median.ts';
import type { Bench } from './run.ts';

const MODEL = 'reference-en';
/** The step of the ensemble that takes most of the time. */
const NETWORK = 'asr_inference';
const SLOTS = 32;
/** Linux counts processor time in hundredths of a second. */
const TICK_MS = 10;

const modes = ['none', 'windows', 'fed back'] as const;
type Mode = (typeof modes)[number];
const longest: Windows = { microMs: MICRO_WINDOW_MS, macroMs: MACRO_WINDOW_MS, batch: 16 };

const clips = ['balance', 'meeting', 'number', 'weather'].map((name) =>
  soundOf(path.join(ROOT, 'test/clips', `${name}.wav`)),
);

/** An utterance of a long recording: all clips in a row. */
function joined(): Float32Array {
  const all = new Float32Array(clips.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const clip of clips) {
    all.set(clip, at);
    at += clip.length;
  }
  return all;
}

async function startEngine() {
  const args = ['--repository', path.join(ROOT, 'infra/pool/models/repository'), '--port', '0', '--model', MODEL];
  const child = fork(path.join(ROOT, 'infra/pool/engine/main.ts'), args, {
    env: { ...process.env, AURICLE_ENGINE_METRICS_PORT: '0' },
  });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  const url = `http://127.0.0.1:${port}`;
  const engine = createKserveEngine(url, SLOTS, 'live');
  return {
    engine,
    cpuMs() {
      const [, , , , , , , , , , , user = 0, system = 0] = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
        .split(') ')[1]!
        .split(' ')
        .map(Number);
      return (user + system) * TICK_MS;
    },
    /** Utterances and executions of the network so far. */
    async executed(): Promise<readonly [number, number]> {
      const response = await fetch(`${url}/v2/models/${NETWORK}/stats`);
      const { model_stats: stats } = (await response.json()) as {
        model_stats: [{ inference_count: number; execution_count: number }];
      };
      return [stats[0].inference_count, stats[0].execution_count];
    },
    async stop() {
      engine.close();
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

type Load = Readonly<Record<'seconds' | 'urgent' | 'long' | 'seed', number>>;

interface Times {
  readonly answer: number[];
  readonly held: number[];
}

interface Round {
  readonly cpuMs: number;
  readonly batch: number;
  /** Milliseconds until the answer, and of them in the agent's queue. */
  readonly urgent: Times;
  readonly long: Times;
}

/** Sends both loads through a dispatcher of its own. Arrivals are the same in each mode. */
async function runMode(mode: Mode, running: Awaited<ReturnType<typeof startEngine>>, load: Load): Promise<Round> {
  const depth = (): number => Object.values(dispatcher.queued()).reduce((sum, count) => sum + count, 0);
  const feedback = createWindowFeedback(Date.now, () => ({ depth: depth() }));
  const windows = { none: () => noWindows, windows: () => longest, 'fed back': feedback.windows }[mode];
  const dispatcher = createDispatcher({ engine: running.engine, slots: SLOTS, now: Date.now, windows });
  const long = joined();
  const signal = new AbortController().signal;
  const times = { urgent: { answer: [], held: [] } as Times, long: { answer: [], held: [] } as Times };

  async function send(which: 'urgent' | 'long', samples: Float32Array): Promise<void> {
    const name: RequestClass = which === 'urgent' ? 'interactive' : 'batch';
    const from = performance.now();
    feedback.count();
    const inputs = inputsOf(samples);
    const outputs = modelTensors.outputs;
    const deadline = Date.now() + 60_000;
    const onStart = () => void times[which].held.push(performance.now() - from);
    const answer = await dispatcher.run({ model: MODEL, inputs, outputs, class: name, deadline, signal, onStart });
    if (!answer.ok) throw new Error(JSON.stringify(answer.refusal));
    times[which].answer.push(performance.now() - from);
  }

  /** Poisson arrivals (exponential gaps). */
  async function arrive(which: 'urgent' | 'long', perSecond: number, seed: number): Promise<void> {
    const random = randomOf(seed);
    const from = performance.now();
    const open: Promise<void>[] = [];
    let at = 0;
    for (let i = 0; ; i++) {
      at += (-Math.log(1 - random()) / perSecond) * 1_000;
      if (at >= load.seconds * 1_000) break;
      await sleep(Math.max(0, at - (performance.now() - from)));
      open.push(send(which, which === 'urgent' ? (clips[i % clips.length] as Float32Array) : long));
    }
    await Promise.all(open);
  }

  const [cpu, before] = [running.cpuMs(), await running.executed()];
  await Promise.all([arrive('urgent', load.urgent, load.seed), arrive('long', load.long, load.seed + 1)]);
  const after = await running.executed();
  return {
    cpuMs: (running.cpuMs() - cpu) / (times.urgent.answer.length + times.long.answer.length),
    batch: (after[0] - before[0]) / (after[1] - before[1]),
    ...times,
  };
}

const quantile = (values: readonly number[], share: number) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
const round = (value: number) => Number(value.toPrecision(3));

export async function measure(options: string[]): Promise<Bench> {
  const option = (otherwise: number) => ({ type: 'string', default: String(otherwise) }) as const;
  const { values } = parseArgs({
    args: options,
    options: { seconds: option(10), rounds: option(3), urgent: option(8), long: option(0.8) },
  });
  const [seconds, urgent, long] = [Number(values.seconds), Number(values.urgent), Number(values.long)];
  const running = await startEngine();
  const rounds: Record<Mode, Round[]> = { none: [], windows: [], 'fed back': [] };
  try {
    await runMode('none', running, { seconds: 2, urgent, long, seed: 1 });
    for (let i = 0; i < Number(values.rounds); i++) {
      for (const mode of modes)
        rounds[mode].push(await runMode(mode, running, { seconds, urgent, long, seed: 10 + i }));
    }
  } finally {
    await running.stop();
  }
  const middle = (mode: Mode, of: (one: Round) => number) => round(median(rounds[mode].map(of)));
  const ratios = (mode: Mode, of: (one: Round) => number) =>
    rounds[mode].map((one, i) => of(one) / of(rounds.none[i] as Round));
  const half = (values: readonly number[]) => quantile(values, 0.5);
  return {
    figures: {
      ...ratioFigures('cpu_ratio_vs_none', ratios('windows', ({ cpuMs }) => cpuMs).map(round)),
      ...ratioFigures('fed_back_cpu_ratio_vs_none', ratios('fed back', ({ cpuMs }) => cpuMs).map(round)),
      batch_none: middle('none', ({ batch }) => batch),
      batch_windows: middle('windows', ({ batch }) => batch),
      batch_fed_back: middle('fed back', ({ batch }) => batch),
      held_urgent_ms: middle('windows', ({ urgent: { held } }) => half(held)),
      held_long_ms: middle('windows', ({ long: { held } }) => half(held)),
      fed_back_held_urgent_ms: middle('fed back', ({ urgent: { held } }) => half(held)),
    },
    table: modes.map((mode) => ({
      mode,
      'CPU ms/utterance': middle(mode, ({ cpuMs }) => cpuMs),
      batch: middle(mode, ({ batch }) => batch),
      'urgent held p50 ms': middle(mode, ({ urgent: { held } }) => half(held)),
      'urgent answer p50 ms': middle(mode, ({ urgent: { answer } }) => half(answer)),
      'long held p50 ms': middle(mode, ({ long: { held } }) => half(held)),
      'long answer p50 ms': middle(mode, ({ long: { answer } }) => half(answer)),
    })),
    how:
      `Embedded engine with ${MODEL} (delay 5 ms in its own batching), one instance on a processor, behind the agent's ` +
      `dispatcher with ${SLOTS} slots. Poisson arrivals of ${urgent} interactive utterances (2.7 to 4 s) and ${long} ` +
      `batch utterances (all clips in a row) a second for ${seconds} s, the same in each mode; modes alternate. ` +
      'Windows: 50 ms, 500 ms, or until 16 wait. CPU: user and system time of the engine. Held: in the queue of the ' +
      'agent. Medians of rounds; ratios are within one round. Milliseconds depend on what else the machine runs.',
  };
}
