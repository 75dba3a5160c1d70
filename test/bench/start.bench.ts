// Time to the first transcript: a cold start of the whole stack, beside that of an empty Worker.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { median, ratioFigures } from './median.ts';
import type { Bench } from './run.ts';

const root = path.join(import.meta.dirname, '..', '..');
const RUNS = 3;

async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Interrupts the group of a command, as Ctrl-C does, and waits until its last process closes standard output. */
const end = (child: ChildProcess) =>
  new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.stdout?.resume();
    process.kill(-(child.pid as number), 'SIGINT');
  });

async function until<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const value = await attempt().catch(() => undefined);
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Milliseconds from the command to the first right transcript. */
async function startStack(): Promise<number> {
  const state = mkdtempSync(path.join(os.tmpdir(), 'auricle-bench-'));
  const port = await freePort();
  const clips = JSON.parse(readFileSync(path.join(root, 'test/clips/clips.json'), 'utf8'));
  const bytes = readFileSync(path.join(root, 'test/clips', clips[0].file));
  const began = performance.now();
  const child = spawn('npm', ['start', '--', '--port', String(port), '--state', state], {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await until(async () => {
    const token = readFileSync(path.join(state, 'token'), 'utf8').trim();
    const form = new FormData();
    form.set('model', 'reference-en');
    form.set('file', new Blob([bytes]), 'speech.wav');
    const answer = await fetch(`http://127.0.0.1:${port}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: form,
    });
    const { text } = (await answer.json()) as { text?: string };
    return text === clips[0].text ? text : undefined;
  });
  const took = performance.now() - began;
  await end(child);
  rmSync(state, { recursive: true, force: true });
  return took;
}

/** Milliseconds from `wrangler dev` to the first answer of a Worker that says "ok". */
async function startWrangler(): Promise<number> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-bench-'));
  mkdirSync(path.join(folder, 'src'));
  writeFileSync(path.join(folder, 'src/worker.js'), "export default { fetch: () => new Response('ok') };\n");
  writeFileSync(
    path.join(folder, 'wrangler.json'),
    JSON.stringify({ name: 'empty', main: 'src/worker.js', compatibility_date: '2026-04-01' }),
  );
  const port = await freePort();
  const wrangler = path.join(root, 'node_modules/wrangler/bin/wrangler.js');
  const began = performance.now();
  const child = spawn(process.execPath, [wrangler, 'dev', '--port', String(port), '--ip', '127.0.0.1'], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false', CI: '1' },
  });
  await until(async () => ((await fetch(`http://127.0.0.1:${port}/`)).ok ? true : undefined));
  const took = performance.now() - began;
  await end(child);
  rmSync(folder, { recursive: true, force: true });
  return took;
}

export async function measure(): Promise<Bench> {
  const ours: number[] = [];
  const peer: number[] = [];
  for (let i = 0; i < RUNS; i += 1) {
    ours.push(await startStack());
    peer.push(await startWrangler());
  }
  const seconds = (values: number[]) => Number((median(values) / 1000).toFixed(2));
  const ratios = ours.map((took, run) => took / (peer[run] as number));
  return {
    table: [
      { what: 'npm start → first transcript (the second pool starts after it)', 'median s': seconds(ours), runs: RUNS },
      { what: 'wrangler dev → first answer of an empty Worker', 'median s': seconds(peer), runs: RUNS },
    ],
    figures: {
      start_to_transcript_s: seconds(ours),
      ...ratioFigures(
        'ratio_vs_wrangler_dev',
        ratios.map((ratio) => Number(ratio.toFixed(2))),
      ),
    },
    how: 'Each run starts from an empty state folder. The clock runs from the command until a request returns the right words; the peer is wrangler dev with a Worker that answers "ok", until its first answer. Runs alternate; medians, of the ratio that of each pair of runs, whose lowest and highest are _low and _high.',
  };
}
