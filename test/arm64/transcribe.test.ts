import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askShort, type FakeEdge, startFakeEdge } from '../fake/edge.ts';
import { audioForm, multipart } from '../infra/agent/fixtures.ts';
import { makeEnvironment } from '../infra/agent/start-agent.ts';
import { clipBytes, clipLike } from '../stack/clips.ts';
import { folder as installation } from './install.ts';

const root = path.resolve(import.meta.dirname, '../..');
const repository = path.join(root, 'infra/pool/models/repository');
const model = 'reference-en';
const clip = clipLike('balance.wav');

let folder: string;
let edge: FakeEdge;
const children: ChildProcess[] = [];

/** Starts a process on arm64 and returns its first message. */
async function start<T>(entry: string, args: readonly string[], env: Record<string, string> = {}): Promise<T> {
  const child = fork(path.join(root, entry), args, {
    execPath: path.join(import.meta.dirname, 'node.sh'),
    execArgv: [],
    env: { ...process.env, AURICLE_ARM64: installation, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  children.push(child);
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`${entry} ended with ${code}`)));
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [T];
  ended.catch(() => {});
  return message;
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-arm64-'));
  edge = await startFakeEdge();
});
afterAll(async () => {
  for (const child of children) child.kill('SIGTERM');
  await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')));
  await rm(folder, { recursive: true, force: true });
});

describe('M7 the embedded target', () => {
  it('an agent and an engine on arm64 transcribe a recording', async () => {
    const ports = ['--port', '0', '--metrics-port', '0'];
    const models = ['--model-control-mode', 'explicit', '--model', model];
    const engine = await start<{ port: number }>('infra/pool/engine/main.ts', [
      ...['--repository', repository],
      ...ports,
      ...models,
    ]);
    const agent = await start<{ url: string; attestation: string; arch: string }>('test/arm64/agent.ts', [], {
      ...(await makeEnvironment(folder, edge)),
      AURICLE_MODELS: repository,
      AURICLE_ENGINE_URL: `http://127.0.0.1:${engine.port}`,
    });
    expect(agent.arch).toBe('arm64');
    const answer = await askShort({
      ...{ url: agent.url, attestation: agent.attestation, agent: 'agent-1', edge },
      body: audioForm(clipBytes(clip), [{ name: 'model', value: model }]),
      contentType: multipart,
      head: { model },
    });
    expect(answer).toMatchObject({ status: 200, whole: true });
    const text = answer.events.flatMap((event) => (event.type === 'segment' ? [event.text] : [])).join(' ');
    expect(text).toBe(clip.text);
  });
});
