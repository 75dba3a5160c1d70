// A release on a whole stack, while storage, functions, agents and engines are killed: the push resumes, every answer
// names a revision that is signed and released, and the new one serves at the end.
import { appendFileSync, cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { modelUuid } from '../../../edge/protocol/deepgram-model.ts';
import type { PartName } from '../../../infra/local/part.ts';
import { ROOT } from '../../../infra/local/root.ts';
import { operatorOf } from '../../demo/operate.ts';
import { forCanary, forGrey, rates, runAt } from '../../shared/registry/people.ts';
import { running } from '../here.ts';
import { kill } from '../streams/place.ts';

const MODEL = 'reference-en';
const PARTS = [
  ...[MODEL, 'vad_preprocess', 'asr_inference', 'nlp_postprocess'],
  ...['reference-en-stream', 'vad_preprocess_stream', 'asr_stream'],
];
const clip = readFileSync(path.join(ROOT, 'test/clips/number.wav'));
const patience = { timeout: 60_000, interval: 250 };
/** Pause between two requests, ms: a trickle. */
const PAUSE_MS = 100;

interface Served {
  readonly name: string;
  readonly revision: string;
  readonly tier?: string;
}

/** Returns the revisions of the model that each pool has loaded; a part that is down gives none. */
async function served(): Promise<string[][]> {
  const { url, token } = running.stack;
  const answer = await fetch(`${url}/v1/pools`, { headers: { authorization: `Bearer ${token}` } });
  const { data = [] } = (await answer.json()) as { data?: { models: Served[] }[] };
  return data.map(({ models }) => models.flatMap((one) => (one.name === MODEL && !one.tier ? one.revision : [])));
}

/** Transcribes until it is stopped; returns statuses and the models that answered. */
function startRequests() {
  const { url, token } = running.stack;
  const [statuses, models] = [new Map<number, number>(), new Set<string | undefined>()];
  let isStopped = false;
  const one = async () => {
    const answer = await fetch(`${url}/v1/listen?model=${MODEL}`, {
      method: 'POST',
      headers: { authorization: `Token ${token}`, 'content-type': 'audio/wav' },
      body: clip,
    });
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    const body = (await answer.json()) as { metadata?: { models: string[] } };
    if (answer.ok) models.add(body.metadata?.models[0]);
  };
  const all = (async () => {
    while (!isStopped) {
      await one();
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  })();
  return {
    models,
    async stop() {
      isStopped = true;
      await all;
      return { statuses, models };
    },
  };
}

it('C7 C8 A16 releases a revision while every part is killed in turn', { timeout: 150_000 }, async () => {
  const { stack, state } = running;
  const operator = operatorOf({ stack, state, folder: (name) => path.join(state, 'demo', name) });
  await expect.poll(async () => (await served()).map(({ length }) => length), patience).toEqual([1, 1]);
  const [[mounted = ''] = []] = await served();
  const folder = path.join(state, 'another');
  cpSync(path.join(ROOT, 'infra/pool/models/repository'), folder, { recursive: true });
  appendFileSync(path.join(folder, MODEL, 'config.pbtxt'), '# Another revision.\n');
  const { revision } = await operator.run<{ revision: string }>('sign', folder, ...PARTS, ...operator.as('author'));
  const requests = startRequests();
  /** Repeats a command until it succeeds: a part that is killed answers nothing. */
  const insist = async (...words: string[]) => {
    const exit = async () => (await operator.ask(...words).catch(() => ({ exit: 1 }))).exit;
    await expect.poll(exit, patience).toBe(0);
  };
  const killAll = (...parts: PartName[]) => Promise.all(parts.map((part) => kill(stack, part)));

  const pushed = insist('push', folder, ...PARTS);
  await killAll('blob');
  await pushed;
  await insist('revisions', MODEL);
  const named = revision.slice(7, 19);
  const steps = [forGrey(), forCanary(), ...[0, 1, 2, 3].map((at) => [rates(runAt(at, 300, 0, 0))])];
  for (const pieces of steps)
    await operator.run('promote', MODEL, named, ...operator.as('reviewer'), ...operator.evidence(pieces));
  const last = operator.evidence([rates(runAt(4, 300, 5, 60))]);
  const { id } = await operator.run<{ id: string }>('promote', MODEL, named, ...operator.as('reviewer'), ...last);
  await operator.run('approve', MODEL, id, ...operator.as('approver'));
  await killAll('functions');
  await insist('alias', MODEL, 'stable', revision);
  await killAll('agent-aks-westeurope', 'engine-eks-us-east-1', 'blob');
  await killAll('functions', 'agent-eks-us-east-1');
  await killAll('engine-aks-westeurope');
  const loaded = async () => (await served().catch(() => [])).map((one) => one.includes(revision));
  await expect.poll(loaded, patience).toEqual(stack.pools.map(() => true));

  const known = [mounted, revision].map((one) => modelUuid(MODEL, one));
  await expect.poll(() => [...requests.models], patience).toContain(known[1]);
  const { statuses, models } = await requests.stop();
  expect([...models].filter((one) => one === undefined || !known.includes(one))).toEqual([]);
  // A refusal names a reason to retry; no answer is a failure of the edge.
  expect([...statuses.keys()].filter((status) => ![200, 429, 502, 503, 504].includes(status))).toEqual([]);
  expect(statuses.get(200)).toBeGreaterThan(0);
});
