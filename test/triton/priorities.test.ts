// Effect of a caller's priority at a real Triton behind the agent.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, startAgent } from '../../infra/pool/agent/agent.ts';
import { readSettings } from '../../infra/pool/agent/settings/settings.ts';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { convertRepository } from '../../infra/pool/triton/models/generate.ts';
import { startTriton, type Triton } from '../../infra/pool/triton/start.ts';
import { untilPending, whileBusy } from '../contract/engine/client.ts';
import { testModels, writeRepository } from '../contract/engine/test-models.ts';
import { type FakeEdge, startFakeEdge } from '../fake/edge.ts';
import { callerOf, type Got, row } from '../infra/agent/kserve/call.ts';
import { makeEnvironment } from '../infra/agent/start-agent.ts';
import { folder as installation } from './install.ts';

const served = 'parameters { key: "task" value { string_value: "infer" } }\n';
const slow = testModels.slow_priority!;
/** A nonexistent level, such as class 3 of two levels, gets the default level, here the first at Triton. */
const firstByDefault = (levels: number) => ({
  ...slow,
  config: `${served}${slow.config
    .replace(/priority_levels: \d+ default_priority_level: \d+/, `priority_levels: ${levels} default_priority_level: 1`)
    .replace(/\n.*priority_queue_policy.*/, '')}`,
});
const models = {
  four: firstByDefault(4),
  two: firstByDefault(2),
  ensemble: { config: `${served}${testModels.whole_priority!.config.replace('slow_priority', 'two')}` },
};

let folder: string;
let triton: Triton;
let edge: FakeEdge;
let agent: Agent;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-triton-'));
  edge = await startFakeEdge();
  const repository = path.join(folder, 'onnx');
  await writeRepository(repository, models);
  await convertRepository(repository, path.join(folder, 'python'));
  const installed = await installTriton({ folder: installation });
  triton = await startTriton({ installed, repository: path.join(folder, 'python') });
  const environment = await makeEnvironment(await mkdtemp(path.join(folder, 'agent')), edge);
  const settings = {
    ...environment,
    AURICLE_MODELS: repository,
    AURICLE_ENGINE_URL: triton.url,
    // All requests of a test are at Triton together: its order is under test.
    AURICLE_SLOTS: '8',
  };
  agent = await startAgent(readSettings(settings), { write: () => {} });
});
afterAll(async () => {
  await agent?.stop();
  await triton?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('A2: priorities of callers before Triton', { timeout: 60_000 }, () => {
  it.each([
    { model: 'four', queue: 'four', levels: 4 },
    { model: 'two', queue: 'two', levels: 2 },
    { model: 'ensemble', queue: 'two', levels: 2 },
  ])('an unknown level raises no request ($model)', async ({ model, queue, levels }) => {
    const caller = callerOf(() => ({ agent, edge }), model);
    const wishes = [
      { class: 'batch', priority: 5 },
      { class: 'batch', priority: Number.MAX_SAFE_INTEGER },
      { class: 'default', priority: 9 },
      { class: 'interactive', priority: 0 },
      { class: 'realtime', priority: 0 },
    ];
    const { finished, all } = await whileBusy(triton, queue, async () => {
      const finished: string[] = [];
      const all: Promise<Got>[] = [];
      for (const [at, { class: name, priority }] of wishes.entries()) {
        const got = caller.infer(
          { inputs: [row('X', 1)], parameters: { priority } },
          { claims: { class: name, model } },
        );
        all.push(got);
        void got.then(() => finished.push(name));
        await untilPending(triton, queue, at + 1);
      }
      return { finished, all };
    });
    for (const { refusal } of await Promise.all(all)) expect(refusal).toBeUndefined();
    // Requests of one level have no order among each other: their answers cross on two connections.
    const urgent = finished.slice(0, 2);
    expect(levels === 4 ? urgent : urgent.toSorted().reverse()).toEqual(['realtime', 'interactive']);
    expect(finished.slice(2).toSorted()).toEqual(['batch', 'batch', 'default']);
  });
});
