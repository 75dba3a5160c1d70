// Location of streams, and faults of the parts below them.
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { PartName } from '../../../infra/local/part.ts';
import type { Stack } from '../../../infra/local/stack.ts';
import type { Running } from '../../stack/running.ts';

/** Polling of other processes; the timeout is only a bound. */
export const patience = { timeout: 20_000, interval: 20 };

const metric = (page: string, name: string): number =>
  [...page.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? ([\\d.e+]+)$`, 'gm'))].reduce(
    (sum, match) => sum + Number(match[1]),
    0,
  );

/** Sum over its labels of a metric of a pool's agent; 0 while the agent does not answer. */
export async function read({ ports }: Stack, pool: string, name: string): Promise<number> {
  try {
    const answer = await fetch(`http://127.0.0.1:${ports[`agent-${pool}`]}/metrics`);
    return metric(await answer.text(), name);
  } catch {
    return 0;
  }
}

const STREAMS = 'auricle_agent_streams_open';

/** Returns the pools of all streams, once `count` of them have one. */
export async function poolsOfStreams(stack: Stack, count: number): Promise<string[]> {
  let found: string[] = [];
  const open = async () => {
    const counts = await Promise.all(stack.pools.map(({ name }) => read(stack, name, STREAMS)));
    found = stack.pools.flatMap(({ name }, at) => ((counts[at] ?? 0) > 0 ? [name] : []));
    return counts.reduce((sum, one) => sum + one, 0);
  };
  await expect.poll(open, patience).toBeGreaterThanOrEqual(count);
  return found;
}

/** Returns the pool of the only stream, once it has one. */
export async function poolOfStream(stack: Stack): Promise<string> {
  return (await poolsOfStreams(stack, 1)).at(-1) as string;
}

/** Waits until no agent has a stream. */
export async function noStreams(stack: Stack): Promise<void> {
  const open = async () => {
    const counts = await Promise.all(stack.pools.map(({ name }) => read(stack, name, STREAMS)));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  await expect.poll(open, patience).toBe(0);
}

/** Kills a part and waits for the end of its process. */
export async function kill(stack: Stack, part: PartName, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  const before = stack.pid(part);
  stack.kill(part, signal);
  await expect.poll(() => stack.pid(part), patience).not.toBe(before);
}

/** Kills parts and suspends their replacements until the returned function is called. */
export async function takeDown(stack: Stack, parts: readonly PartName[]): Promise<() => void> {
  await Promise.all(parts.map((part) => kill(stack, part)));
  const stopped = new Map<PartName, number>();
  const stopNew = () => {
    for (const part of parts) {
      const pid = stack.pid(part);
      if (pid === undefined || stopped.get(part) === pid) continue;
      stack.kill(part, 'SIGSTOP');
      stopped.set(part, pid);
    }
  };
  const timer = setInterval(stopNew, 10);
  return () => {
    clearInterval(timer);
    for (const part of stopped.keys()) stack.kill(part, 'SIGCONT');
  };
}

/** Waits until every part runs and the edge has reports of all agents. */
export async function whole(stack: Stack): Promise<void> {
  await expect.poll(() => stack.parts.filter((part) => !stack.isReady(part)), patience).toEqual([]);
  const ready = async () => {
    const answer = await fetch(`${stack.url}/v1/pools`, { headers: { authorization: `Bearer ${stack.token}` } });
    const { data } = (await answer.json()) as { data: { health: string }[] };
    return data.filter(({ health }) => health === 'ready').length;
  };
  await expect.poll(() => ready().catch(() => 0), patience).toBe(stack.pools.length);
}

/** Checks that no log line has a word of the transcripts or a token. Short words may occur anywhere. */
export function expectNoContent(running: Running, texts: readonly string[]): void {
  const logs = running.logs();
  expect(logs.length).toBeGreaterThan(0);
  const said = texts.flatMap((text) => text.split(' ')).filter((word) => word.length > 6);
  expect(said.length).toBeGreaterThan(0);
  for (const word of said) expect(logs).not.toMatch(new RegExp(`\\b${word}\\b`, 'i'));
  expect(logs).not.toContain(readFileSync(running.stack.tokenFile, 'utf8').trim());
}
