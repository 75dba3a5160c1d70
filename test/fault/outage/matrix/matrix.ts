// Runs scenarios one after another on one stack, each under the load of tenants of its own.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Running, run } from '../../../stack/running.ts';
import { openDeepgram, openOpenAi } from '../../streams/official.ts';
import { whole } from '../../streams/place.ts';
import { story } from '../../streams/sound.ts';
import { breakParts } from './break.ts';
import { type Caller, type Expected, stream, transcribe } from './callers.ts';
import { type Call, callers, type Load, startLoad } from './load.ts';
import { writeRow } from './results.ts';
import type { Scenario } from './scenarios.ts';
import { checkRecord, compareAllowance, compareTexts, endAll, retryAll, SECONDS_OF_DAY } from './settle.ts';

/** Bound within which an undisturbed stack serves the whole load once, ms. */
const START_MS_MAX = 60_000;
/** Bound on open work after an outage, ms. */
const OPEN_MS_MAX = 120_000;
/** Tokens outlive the longest scenario. */
const TOKEN_SECONDS = 1_800;

export function runScenarios(scenarios: readonly Scenario[]): void {
  let running: Running;
  let expected: Expected;

  const callerOf = async (tenant: string, scope: string): Promise<Caller> => {
    const allowance = { audioSecondsPerDay: SECONDS_OF_DAY };
    const claims = { tenant, scope, uploads: 'plain', zones: ['eu', 'us'], allowance };
    return { url: running.stack.url, token: await running.mint(claims, TOKEN_SECONDS) };
  };

  beforeAll(async () => {
    running = await run();
    expected = await undisturbed(running, await callerOf('undisturbed', 'transcribe stream'));
  });
  afterAll(() => running?.end());

  describe('C9 C11 T4 A8: callers of a stack of which parts fail', () => {
    it.each(scenarios)('keeps served results and explains refusals: $name', async (scenario) => {
      await whole(running.stack);
      const tenant = scenario.name.replaceAll(/[^a-z0-9]+/g, '-');
      const live = await callerOf(`${tenant}-live`, 'transcribe stream');
      const batch = await callerOf(`${tenant}-batch`, 'transcribe uploads projects');
      const load = startLoad(running, { live, batch }, expected);
      await expect.poll(load.isRunning, { timeout: START_MS_MAX, interval: 100 }).toBe(true);
      await breakParts(running.stack, scenario);
      const outageEnd = Date.now();
      const settled = await settle(running, { load, batch, outageEnd, text: expected.recording });
      const problems = [...problemsOf(load.calls, scenario), ...settled.problems];
      writeRow(scenario.name, { calls: load.calls, ...settled, problems });
      expect(problems).toEqual([]);
    });
  });
}

interface Outage {
  readonly load: Load;
  readonly batch: Caller;
  readonly outageEnd: number;
  readonly text: string;
}

async function settle(running: Running, { load, batch, outageEnd, text }: Outage) {
  await load.finish(outageEnd);
  const servedMs = Math.max(...callers.map((caller) => servedAt(load.calls, caller, outageEnd))) - outageEnd;
  const first = await endAll(batch, load.made, outageEnd + OPEN_MS_MAX);
  const endedMs = Date.now() - outageEnd;
  // Retries create further work, which gets a bound of its own.
  const problems = [...first.problems, ...(await retryAll(batch, load.made, Date.now() + OPEN_MS_MAX))];
  const { problems: open, uploads } = await endAll(batch, load.made, Date.now() + OPEN_MS_MAX);
  problems.push(...open, ...(await compareTexts(batch, uploads, text)), ...(await compareAllowance(batch, uploads)));
  problems.push(...(await checkRecord(running)));
  return { servedMs, endedMs, problems: [...new Set(problems)] };
}

/** Time of the first answer to a request that a caller sent after the outage, ms since 1970. */
const servedAt = (calls: readonly Call[], caller: string, outageEnd: number): number =>
  Math.min(
    ...calls
      .filter((call) => call.caller === caller && call.result === 'served' && call.startedAt >= outageEnd)
      .map(({ answeredAt }) => answeredAt),
  );

/**
 * Checks that every caller is served again, none gets wrong words, and the network fails only when the edge
 * does.
 */
function problemsOf(calls: readonly Call[], { parts }: Scenario): string[] {
  const wrong = calls.filter(({ result }) => result === 'wrong').map(({ caller, reason }) => `${caller}: ${reason}`);
  const silent = calls
    .filter(({ result, reason }) => result === 'lost' && !/^502 \w+|closed with (?!1006)\d+/.test(reason))
    .map(({ caller, reason }) => `${caller} lost without a reason: ${reason}`);
  const missing = callers
    .filter((caller) => calls.findLast((call) => call.caller === caller)?.result !== 'served')
    .map((caller) => `${caller} is not served again`);
  return [...new Set([...wrong, ...(parts.includes('edge') ? [] : silent), ...missing])];
}

async function undisturbed(running: Running, caller: Caller): Promise<Expected> {
  const own = { ...running, stack: { ...running.stack, token: caller.token } };
  const heard = async (open: Parameters<typeof stream>[0]) => {
    const outcome = await stream(open, () => {});
    if (outcome.result !== 'served') throw new Error(outcome.reason);
    return outcome.heard;
  };
  const [recording, deepgram, openai] = await Promise.all([
    transcribe(caller),
    heard(() => openDeepgram(own, story.second)),
    heard(() => openOpenAi(own)),
  ]);
  return { recording: (JSON.parse(recording.text) as { text: string }).text, deepgram, openai };
}
