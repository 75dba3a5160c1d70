// Switch of a revision of 500 MB under traffic (A16): the agent's loader and the embedded engine, from memory, disk and a
// blob store on this machine; beside it the plain way, which unloads and then loads.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import promises, { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Registry } from 'prom-client';
import type { Engine } from '../../infra/pool/agent/engine/engine.ts';
import { createKserveEngine } from '../../infra/pool/agent/engine/kserve.ts';
import { EngineFolder } from '../../infra/pool/agent/loader/engine-folder.ts';
import type { KnownRevision } from '../../infra/pool/agent/loader/known-revision.ts';
import { Loader } from '../../infra/pool/agent/loader/loader.ts';
import { createTierMetrics } from '../../infra/pool/agent/loader/metrics.ts';
import { readRepository } from '../../infra/pool/agent/models/models.ts';
import { FileStore } from '../../infra/pool/agent/store/file-store.ts';
import { httpSource } from '../../infra/pool/agent/store/http-source.ts';
import type { LogFields } from '../../infra/pool/agent/telemetry/log.ts';
import type { ModelRelease } from '../../shared/registry/release.ts';
import type { Bench } from './run.ts';
import { makeModel } from './switch/make-model.ts';

const root = path.resolve(import.meta.dirname, '../..');
/** Requests a second. */
const RATE = 50;
/** Traffic before and after a switch, ms. */
const AROUND_MS = 3_000;
const never = new AbortController().signal;

interface Traffic {
  readonly failed: number;
  readonly times: readonly number[];
}

/** Asks for a row at a constant rate, whatever the answers take. */
function startTraffic(engine: Engine, model: () => string): { stop(): Promise<Traffic> } {
  const times: number[] = [];
  let failed = 0;
  const open = new Set<Promise<void>>();
  const one = async () => {
    const began = performance.now();
    const outcome = await engine.infer({
      model: model(),
      inputs: [{ name: 'INDEX', datatype: 'INT64', shape: [1], bytes: new Uint8Array(8) }],
      outputs: ['ROW'],
      priority: 0,
      timeoutMicros: 10_000_000,
      signal: AbortSignal.timeout(10_000),
    });
    times.push(performance.now() - began);
    if (!outcome.ok) failed += 1;
  };
  const timer = setInterval(() => {
    const work = one().finally(() => open.delete(work));
    open.add(work);
  }, 1_000 / RATE);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
      return { failed, times };
    },
  };
}

const p99 = (times: readonly number[]) => [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0;

async function startEngine(repository: string) {
  const child = fork(
    path.join(root, 'infra/pool/engine/main.ts'),
    ['--repository', repository, '--port', '0', '--model-control-mode', 'explicit'],
    { env: { ...process.env, AURICLE_ENGINE_METRICS_PORT: '0' } },
  );
  const [ready] = (await once(child, 'message')) as [{ port: number }];
  const engine = createKserveEngine(`http://127.0.0.1:${ready.port}`, 16, 'live');
  return {
    engine,
    async stop() {
      engine.close();
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

/** Serves the files of a revision by digest, as a blob store does. */
async function serveFiles(repository: string, files: KnownRevision['files']) {
  const server = createServer((request, response) => {
    const file = files.find(({ digest }) => request.url === `/${digest}`);
    if (!file) return void response.writeHead(404).end();
    createReadStream(path.join(repository, file.name)).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { server, source: httpSource(async ({ digest }) => `http://127.0.0.1:${port}/${digest}`) };
}

async function readRevision(repository: string): Promise<{ known: KnownRevision; close: () => void }> {
  const [model] = await readRepository(repository, {
    now: Date.now(),
    onBroken: (name, detail) => {
      throw new Error(`${name}: ${detail}`);
    },
  });
  if (!model) throw new Error('no model');
  const files = model.files ?? [];
  const { server, source } = await serveFiles(repository, files);
  const { description } = model;
  return { known: { digest: description.revision, files, description, source }, close: () => server.close() };
}

export async function measure(options: string[]): Promise<Bench> {
  const { values } = parseArgs({ args: options, options: { megabytes: { type: 'string', default: '500' } } });
  const folder = await mkdtemp(path.join(os.tmpdir(), 'auricle-switch-'));
  const repositories = ['one', 'other'].map((name) => path.join(folder, name));
  for (const [mark, repository] of repositories.entries()) {
    await makeModel(repository, Number(values.megabytes) * 1e6, mark);
  }
  const revisions = await Promise.all(repositories.map(readRevision));
  const [one, other] = revisions.map(({ known }) => known) as [KnownRevision, KnownRevision];
  const running = await startEngine(path.join(folder, 'engine'));
  try {
    const rows = [];
    for (const from of ['ram', 'ssd', 'blob'] as const)
      rows.push(await switchTo(running.engine, folder, one, other, from));
    rows.push(await replaceInPlace(running.engine, path.join(folder, 'engine')));
    const [ram] = rows;
    return {
      table: rows,
      figures: {
        switch_ram_ms: ram?.switch_ms ?? Number.NaN,
        switch_ssd_ms: rows[1]?.switch_ms ?? Number.NaN,
        switch_blob_ms: rows[2]?.switch_ms ?? Number.NaN,
        failed_requests: rows.slice(0, 3).reduce((sum, { failed }) => sum + failed, 0),
        failed_in_place: rows[3]?.failed ?? Number.NaN,
      },
      how: `A generated ONNX revision of ${values.megabytes} MB (a table of rows, weights beside the graph, which ONNX Runtime maps) under ${RATE} requests a second at the embedded engine. switch: from the release map to the first request at the new revision. ram: copies in the engine's repository and in the page cache; ssd: verified files in the store; blob: an HTTP server on this machine. in place: unload, then load, of the same revision. p99 of requests within ${AROUND_MS / 1_000} s around the switch.`,
    };
  } finally {
    await running.stop();
    for (const { close } of revisions) close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Switches the traffic from one revision to the other, whose bytes are in the given tier. */
async function switchTo(
  engine: Engine,
  folder: string,
  one: KnownRevision,
  other: KnownRevision,
  from: 'ram' | 'ssd' | 'blob',
) {
  const stopped = new AbortController();
  const store = await FileStore.open({
    folder: path.join(folder, `store-${from}`),
    bytes: 10e9,
    order: (files) => files,
    disk: promises,
    now: Date.now,
    sleep: async (ms) => void (await sleep(ms)),
    every: () => () => {},
    signal: stopped.signal,
  });
  const engineFolder = await EngineFolder.open({ folder: path.join(folder, 'engine'), store, disk: promises });
  const phases: LogFields[] = [];
  let models: Record<string, ModelRelease> = { table: { stable: one.digest } };
  const loader = new Loader({
    ...{ engine, store, folder: engineFolder, now: Date.now, bytes: { engine: 10e9, ram: 10e9, ssd: 10e9 } },
    released: () => models,
    mounted: async () => [],
    fetchReleased: async (_, revision) => (revision === one.digest ? one : other),
    serve: async ({ description }, { names }) => ({ description, engineModel: names.get('table') ?? '' }),
    onChange: async () => {},
    metrics: createTierMetrics(new Registry(), () => []),
    log: (event, fields) => void (event === 'model-warm' && phases.push(fields ?? {})),
  });
  const nameOf = (known: KnownRevision) =>
    loader.served().find(({ description }) => description.revision === known.digest)?.engineModel;
  const waitFor = async (known: KnownRevision): Promise<string> => {
    for (;;) {
      const name = nameOf(known);
      if (name !== undefined) return name;
      const [failure] = loader.failures();
      if (failure) throw new Error(failure.reason);
      await sleep(1);
    }
  };
  await loader.refresh();
  let current = await waitFor(one);
  if (from !== 'blob') {
    for (const file of other.files) {
      const fetched = await store.fetch(file, other.source);
      if (!fetched.ok) throw new Error(fetched.refusal.detail);
      fetched.value.release();
    }
  }
  if (from === 'ram') {
    const placed = await engineFolder.place(other, other.source);
    if (!placed.ok) throw new Error(placed.refusal.detail);
  }
  const quiet = startTraffic(engine, () => current);
  await sleep(AROUND_MS);
  const before = await quiet.stop();
  const traffic = startTraffic(engine, () => current);
  const began = performance.now();
  models = { table: { stable: other.digest, before: one.digest } };
  await loader.refresh();
  current = await waitFor(other);
  const switched = performance.now() - began;
  await sleep(AROUND_MS);
  const during = await traffic.stop();
  loader.close();
  const names = [...new Set([nameOf(one), nameOf(other)])].flatMap((name) => name ?? []);
  for (const name of names) await engine.unload(name, never);
  return {
    from,
    switch_ms: Math.round(switched),
    copy_ms: phases.at(-1)?.copyMs ?? 0,
    load_ms: phases.at(-1)?.loadMs ?? 0,
    failed: before.failed + during.failed,
    p99_before_ms: Number(p99(before.times).toFixed(1)),
    p99_during_ms: Number(p99(during.times).toFixed(1)),
  };
}

/** The plain way: the model is unloaded and loaded again while requests go on. */
async function replaceInPlace(engine: Engine, folder: string) {
  const [name = ''] = await promises.readdir(folder);
  await engine.load(name, never);
  const traffic = startTraffic(engine, () => name);
  await sleep(AROUND_MS);
  const began = performance.now();
  await engine.unload(name, never);
  await engine.load(name, never);
  const switched = performance.now() - began;
  await sleep(AROUND_MS);
  const { failed, times } = await traffic.stop();
  const row = { copy_ms: 0, load_ms: Math.round(switched), failed, p99_before_ms: 0 };
  return { from: 'in place', switch_ms: Math.round(switched), ...row, p99_during_ms: Number(p99(times).toFixed(1)) };
}
