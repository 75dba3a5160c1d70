import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { decodeJwt } from 'jose';
import { expect } from 'vitest';
import { WebSocketServer } from 'ws';
import { agentMessage } from '../../shared/pool/heartbeat.ts';
import { askShort, startFakeEdge } from '../fake/edge.ts';
import { audioForm, multipart } from '../infra/agent/fixtures.ts';
import { makeEnvironment } from '../infra/agent/start-agent.ts';
import { clipBytes, clipLike } from '../stack/clips.ts';

const model = 'reference-en';
export const clip = clipLike('balance.wav');

/** A Node and the files it runs. */
export interface Installation {
  /** Command that runs Node. */
  readonly command: string;
  /** Arguments of the command before the file that Node runs. */
  readonly args: readonly string[];
  /** Folder that the processes see as `/`; empty for that of this machine. */
  readonly root: string;
  /** Folder of the sources, as the processes see it. */
  readonly sources: string;
  /** Model repository, as the processes see it. */
  readonly repository: string;
  /** Existing folder that the agent writes to, on this machine. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts an engine and its agent and returns the text of a recording. */
export async function transcribeWith(installation: Installation): Promise<string> {
  const { command, args, root, sources, repository, folder, env } = installation;
  const children: ChildProcess[] = [];
  const edge = await startFakeEdge();
  const roster = await startRoster();
  /** Starts a process and returns its first message. */
  const start = async <T>(entry: string, given: readonly string[], own: Record<string, string> = {}): Promise<T> => {
    const variables = { PATH: '/usr/bin', ...env, ...own };
    const child = fork(path.join(sources, entry), given, {
      ...{ execPath: command, execArgv: [...args], env: variables, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
    });
    children.push(child);
    const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`${entry} ended with ${code}`)));
    const [message] = (await Promise.race([once(child, 'message'), ended])) as [T];
    ended.catch(() => {});
    return message;
  };
  try {
    const ports = ['--port', '0', '--metrics-port', '0'];
    const models = ['--repository', repository, '--model-control-mode', 'explicit', '--model', model];
    const engine = await start<{ port: number }>('infra/pool/engine/main.ts', [...ports, ...models]);
    const made = Object.entries(await makeEnvironment(folder, edge));
    const agent = await start<{ url: string }>('infra/pool/agent/main.ts', [], {
      ...Object.fromEntries(made.map(([name, value]) => [name, root ? value.replace(root, '') : value])),
      AURICLE_MODELS: repository,
      AURICLE_ENGINE_URL: `http://127.0.0.1:${engine.port}`,
      AURICLE_EDGE_URL: roster.url,
    });
    const isReady = async () => (await fetch(`${agent.url}/readyz`)).status;
    await expect.poll(isReady, { timeout: 60_000, interval: 200 }).toBe(200);
    const answer = await askShort({
      ...{ url: agent.url, attestation: await roster.attestation, agent: 'agent-1', edge },
      body: audioForm(clipBytes(clip), [{ name: 'model', value: model }]),
      contentType: multipart,
      head: { model },
    });
    if (!answer.whole) throw new Error(`the agent answered ${answer.status} ${answer.reason}`);
    return answer.events.flatMap((event) => (event.type === 'segment' ? [event.text] : [])).join(' ');
  } finally {
    for (const child of children) child.kill('SIGTERM');
    await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')));
    await roster.stop();
  }
}

/** Starts a server of heartbeats, which learns the attestation of the first agent. */
async function startRoster() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const attestation = new Promise<string>((resolve) => {
    server.on('connection', (socket) => {
      socket.on('message', (data) => {
        const message = agentMessage.parse(decodeJwt(String(data)));
        if (message.type !== 'hello') return;
        socket.send(JSON.stringify({ type: 'welcome', intervalMs: 1_000 }));
        resolve(message.attestation);
      });
    });
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    attestation,
    stop: () => {
      for (const socket of server.clients) socket.terminate();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
