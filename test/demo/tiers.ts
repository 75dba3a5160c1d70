// `npm run demo:tiers`: thirty small revisions at one agent of a local stack, whose tiers are too small for all of them,
// while the favourites of its traffic drift. Prints a table and draws a picture. `--json` prints `{ "figures": … }` on
// stdout and the rest on stderr; `--out FILE` names the picture.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { startStack } from '../../infra/local/stack.ts';
import { seeded } from '../../shared/registry/seeded.ts';
import { makeModel } from '../bench/switch/make-model.ts';
import { draw } from './tiers/draw.ts';
import { Timeline, tiers } from './tiers/timeline.ts';
import { planTraffic, send } from './tiers/traffic.ts';

const MODELS = 30;
const POOL = 'aks-westeurope';
const AGENT = `agent-${POOL}`;
/** Bounds of the tiers, as shares of what all models take there. */
const SHARES = { AURICLE_ENGINE_BYTES: 0.4, AURICLE_RAM_BYTES: 0.4, AURICLE_STORE_BYTES: 0.7 };
/** Heap of the thread that the embedded engine has for each loaded model, measured. */
const THREAD_BYTES = 15.4e6;
/** A fleet's favourites change within hours; here within seconds. */
const LIMITS = { 'infra/pool/agent/tier/state.ts': { RATE_HALF_LIFE_MS: 3_000, SLOW_HALF_LIFE_MS: 60_000 } };
/** Traffic is drawn from its start until so long after its end, ms. */
const AFTER_MS = 1_000;

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '90' },
    out: { type: 'string', default: '.auricle/tiers.svg' },
  },
});
const say = (line: string) => (values.json ? process.stderr : process.stdout).write(`${line}\n`);
const leaving = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => leaving.abort());

const state = mkdtempSync(path.join(os.tmpdir(), 'auricle-tiers-'));
try {
  await run();
} finally {
  rmSync(state, { recursive: true, force: true });
}
process.exit(process.exitCode ?? 0);

async function run(): Promise<void> {
  const random = seeded(1);
  const sizes = new Map<string, number>();
  const repository = path.join(state, 'repository');
  for (let at = 0; at < MODELS; at += 1) {
    const name = `model-${String(at + 1).padStart(2, '0')}`;
    const bytes = Math.round(2e6 * 8 ** random());
    sizes.set(name, bytes);
    await makeModel(repository, bytes, at * 10_000, name);
  }
  const all = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  const loaded = all + MODELS * THREAD_BYTES;
  const bounds = Object.entries(SHARES).map(([name, share]) => {
    const whole = name === 'AURICLE_ENGINE_BYTES' ? loaded : all;
    return [name, String(Math.round(share * whole))] as const;
  });
  const timeline = new Timeline([...sizes.keys()], Date.now());
  const stack = await startStack({
    ...{ port: 0, state: path.join(state, 'stack'), models: repository, limits: LIMITS, signal: leaving.signal },
    parts: ['blob', 'sqs', 'functions', 'release', `engine-${POOL}`, AGENT, 'edge'],
    agentSettings: Object.fromEntries(bounds),
    onLine: (part, line) => part === AGENT && timeline.take(line),
  });
  say(`${MODELS} revisions of ${megabytes(all)} at one agent: ${bounds.map(showBound).join(', ')}`);
  try {
    const from = Date.now();
    const sent = await send(stack, planTraffic([...sizes.keys()], Number(values.seconds)), leaving.signal);
    const to = Math.max(...sent.map(({ at, milliseconds }) => at + milliseconds)) + AFTER_MS;
    const spans = timeline.close(to);
    const requests = sent.map((one) => ({ ...one, tier: timeline.tierAt(one.model, one.at) }));
    const waited = requests.filter(({ tier }) => tier !== 'gpu').map(({ milliseconds }) => milliseconds);
    const problems = requests.flatMap(({ failure }) => failure ?? []);
    const figures = {
      requests: requests.length,
      failed: problems.length,
      moves: timeline.moves,
      from_gpu: Number((1 - waited.length / requests.length).toFixed(3)),
      wait_p50_ms: quantile(waited, 0.5),
      wait_p99_ms: quantile(waited, 0.99),
    };
    for (const problem of new Set(problems)) say(problem);
    printTable(requests);
    const rows = [...sizes].map(([model, bytes]) => ({ model, note: megabytes(bytes), spans: spans.get(model) ?? [] }));
    const title = `${MODELS} revisions, ${megabytes(all)}, at one agent`;
    const subtitle = [
      `room for ${percent(SHARES.AURICLE_ENGINE_BYTES)} in gpu, ${percent(SHARES.AURICLE_RAM_BYTES)} in ram, ${percent(SHARES.AURICLE_STORE_BYTES)} on ssd`,
      `${figures.requests} requests, ${percent(figures.from_gpu)} from gpu, ${figures.failed} failed`,
      `the others waited ${figures.wait_p50_ms} ms (p50), ${figures.wait_p99_ms} ms (p99)`,
    ].join(' · ');
    mkdirSync(path.dirname(path.resolve(values.out)), { recursive: true });
    writeFileSync(values.out, draw({ title, subtitle, rows, requests, from, to }));
    say(`drawn: ${path.resolve(values.out)}`);
    process.stdout.write(
      values.json ? `${JSON.stringify({ figures })}\n` : `${JSON.stringify(figures, undefined, 2)}\n`,
    );
    process.exitCode = figures.failed > 0 ? 1 : 0;
  } finally {
    await stack.stop();
  }
}

/** Prints requests and their times by the tier of the revision at their arrival. */
function printTable(requests: readonly { readonly tier: string; readonly milliseconds: number }[]): void {
  say('tier   requests   p50 ms   p99 ms');
  for (const tier of tiers) {
    const times = requests.flatMap((one) => (one.tier === tier ? one.milliseconds : []));
    const cells = [times.length, quantile(times, 0.5), quantile(times, 0.99)].map((cell) => String(cell).padStart(9));
    say(`${tier.padEnd(6)}${cells.join('')}`);
  }
}

function quantile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function showBound([name, bytes]: readonly [string, string]): string {
  return `${name}=${bytes}`;
}
