// auricle deploy check: proves a deployment from outside, as a tenant uses it. It stops a zone's checks at the first
// failure that the later ones rely on.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { readVerifierKey } from '../../../shared/audit/note-key.ts';
import { toBase64 } from '../../../shared/base64.ts';
import { type Answer, refused, unreachable } from '../answer.ts';
import { audit } from '../audit/audit.ts';
import { listedLogs } from '../audit/log.ts';
import { upload } from '../jobs/upload.ts';
import { realEnv } from '../jobs/upload-env.ts';
import { type Caller, callEdge, type Headers } from '../models/registry.ts';
import type { Arguments } from '../options.ts';
import { table } from '../table.ts';
import { checkTls } from './check-tls.ts';
import { readFolder, type Target } from './read-target.ts';
import { failed, passed, type Step } from './step.ts';

/** A recording with one speaker, which the demonstration models know. */
const CLIP = fileURLToPath(new URL('../../../test/clips/number.wav', import.meta.url));
/** Longest wait for the entry of a request in the log, ms: published within seconds. */
const PUBLISHED_MS_MAX = 60_000;
/** Longest wait for the decision of a request, ms: isolates report it in a fraction of a second. */
const DECIDED_MS_MAX = 10_000;
const POLL_MS = 1_000;

const models = z.object({ data: z.array(z.looseObject({ id: z.string(), task: z.string().optional() })) });
const pools = z.looseObject({
  data: z.array(z.looseObject({ pool: z.string(), zone: z.string(), health: z.string() })),
  refused: z.array(z.object({ pool: z.string(), zone: z.string(), why: z.string() })),
});
const route = z.looseObject({ attempts: z.array(z.looseObject({ pool: z.string() })) });

export async function checkDeployment(given: Arguments, token: string): Promise<Answer> {
  const [, name] = given.operands;
  const found =
    name === undefined
      ? { edge: given.edge, targets: [{ zone: given.zone, token, logKey: undefined }] }
      : readFolder(given, name);
  if ('exit' in found) return found;
  const { edge, targets } = found;
  const steps: Step[] = [];
  try {
    steps.push(await checkTls(edge));
    for (const target of targets) steps.push(...(await checkZone({ ...given, edge }, target)));
  } catch (error) {
    steps.push(failed('edge reachable', unreachable(edge, error)));
  }
  const bad = steps.filter(({ outcome }) => outcome === 'fail').length;
  const text = table(steps.map(({ step, outcome, detail }) => [outcome, step, detail]));
  return {
    exit: bad > 0 ? 1 : 0,
    text: `${text}\n\n${bad === 0 ? 'The deployment works.' : `${bad} of ${steps.length} checks failed.`}`,
    value: { edge, steps },
  };
}

async function checkZone(given: Arguments, target: Target): Promise<Step[]> {
  const headers = { authorization: `Bearer ${target.token}` };
  const caller = { edge: given.edge, headers };
  const of = (step: string) => (target.zone === undefined ? step : `${step}, zone ${target.zone}`);
  const listed = await callEdge(caller, 'models', models);
  if ('exit' in listed) return [failed(of('token accepted'), listed)];
  const hearing = listed.value.data.filter(({ task }) => task === undefined || task === 'transcribe');
  const model = given.onlyModel ?? hearing[0]?.id;
  const steps = [passed(of('token accepted'), `${listed.value.data.length} models`)];
  const joined = await callEdge(caller, 'pools', pools);
  if ('exit' in joined) steps.push(failed(of('pools joined'), joined));
  const mine =
    'exit' in joined ? [] : joined.value.data.filter(({ zone }) => target.zone === undefined || zone === target.zone);
  if (!('exit' in joined)) steps.push(...poolSteps(of, mine, joined.value.refused));
  if (model === undefined)
    return [...steps, { step: of('transcription'), outcome: 'fail', detail: 'no model transcribes' }];
  const served = await transcribeOnce({ ...given, model }, headers);
  steps.push({ ...served.step, step: of(served.step.step) });
  if (served.request === undefined) return steps;
  steps.push(...(await poolsReached(caller, served.request, mine)));
  const file = given.audio ?? CLIP;
  const quiet = { ...realEnv(), print: () => {} };
  const sent = await upload(
    { ...given, model, zone: target.zone, operands: [file], wait: true, format: undefined },
    headers,
    quiet,
  );
  steps.push(
    sent.exit === 0 ? passed(of('upload to outcome'), sent.text.slice(0, 60)) : failed(of('upload to outcome'), sent),
  );
  steps.push(await checkReceipt(given, target, headers, served.request));
  return steps;
}

type Joined = readonly { readonly pool: string; readonly health: string }[];

function poolSteps(of: (step: string) => string, joined: Joined, rejected: z.infer<typeof pools>['refused']): Step[] {
  const names = [...new Set(joined.filter(({ health }) => health !== 'gone').map(({ pool }) => pool))];
  const refusals = rejected.map(({ pool, why }) => failed(`pool ${pool} joins`, why));
  return [
    names.length > 0 ? passed(of('pools joined'), names.join(', ')) : failed(of('pools joined'), 'none'),
    ...refusals,
  ];
}

async function transcribeOnce(given: Arguments, headers: Headers): Promise<{ step: Step; request?: string }> {
  const form = new FormData();
  form.set('model', given.model);
  form.set('file', new Blob([readFileSync(given.audio ?? CLIP)]), path.basename(given.audio ?? CLIP));
  const response = await fetch(`${given.edge}/v1/audio/transcriptions`, { method: 'POST', headers, body: form });
  if (!response.ok) return { step: failed('transcription', await refused(response)) };
  const { text } = z.object({ text: z.string() }).parse(await response.json());
  const request = response.headers.get('x-request-id');
  const step = text === '' ? failed('transcription', 'the transcript is empty') : passed('transcription', text);
  return { step, ...(request !== null && { request }) };
}

/** Names the pool that served the request; the edge chooses, so others of the zone are not reached. */
async function poolsReached(caller: Caller, request: string, joined: Joined): Promise<Step[]> {
  const find = () => callEdge(caller, `requests/${encodeURIComponent(request)}/route`, route);
  const decided = await poll(find, DECIDED_MS_MAX);
  if ('exit' in decided) return [{ step: 'pool that served', outcome: 'skip', detail: decided.text }];
  const served = decided.value.attempts.at(-1)?.pool;
  return [...new Set(joined.map(({ pool }) => pool))].map((pool) =>
    pool === served
      ? passed(`pool ${pool} serves`, `request ${request}`)
      : { step: `pool ${pool} serves`, outcome: 'skip', detail: 'the edge chose another one for this request' },
  );
}

/** Repeats a call until it succeeds, for so many milliseconds. */
async function poll<T extends object>(call: () => Promise<T | Answer>, ms: number): Promise<T | Answer> {
  for (const until = Date.now() + ms; ; ) {
    const answered = await call();
    if (!('exit' in answered) || answered.exit === 0 || Date.now() > until) return answered;
    await sleep(POLL_MS);
  }
}

/** Waits for the request's entries in the log, and verifies their receipts under the log's key. */
async function checkReceipt(
  given: Arguments,
  { zone, logKey }: Target,
  headers: Headers,
  request: string,
): Promise<Step> {
  const step = `audit receipt${zone === undefined ? '' : `, zone ${zone}`}`;
  const logs = await callEdge({ edge: given.edge, headers }, 'audit/log', listedLogs);
  if ('exit' in logs) return failed(step, logs);
  const newest = logs.value.data.find((one) => zone === undefined || one.zone === zone);
  if (!newest) return failed(step, 'the zone has no log');
  const key = readVerifierKey(newest.vkey);
  if (logKey !== undefined && (!key || toBase64(key.publicKey) !== logKey))
    return failed(step, 'the edge names another key of the log than AUDIT_LOGS in edge.env');
  const out = mkdtempSync(path.join(os.tmpdir(), 'auricle-check-'));
  try {
    const query = {
      ...given,
      zone: newest.zone,
      key: newest.vkey,
      year: undefined,
      out,
      operands: ['receipt', request],
    };
    const proven = await poll(() => audit(query, headers), PUBLISHED_MS_MAX);
    if (proven.exit !== 0) return failed(step, proven);
    return passed(step, `${newest.zone}: ${(proven.value as unknown[]).length} entries proven`);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}
