// `npm run demo:lifecycle`: revisions of the reference model on their way through the five gates of a local stack, while
// phones talk to it. `--json` prints `{ "figures": … }` on stdout and the story on stderr.
import process from 'node:process';
import { LIMITS, startFleet } from './fleet.ts';
import { operatorOf } from './operate.ts';
import { MODEL } from './revisions.ts';
import { begin, play } from './scenes.ts';
import { figures, type Story } from './story.ts';
import { startTraffic, type Traffic } from './traffic.ts';

/** Bound on the whole run, on a busy machine. */
const MINUTES = 12;
/** Timeout of the shutdown, s. */
const ENDING_SECONDS = 60;
const PHONES = 6;

const asJson = process.argv.includes('--json');
const began = performance.now();
const say = (line: string) => {
  const seconds = ((performance.now() - began) / 1_000).toFixed(1).padStart(6);
  (asJson ? process.stderr : process.stdout).write(`${seconds} s  ${line}\n`);
};

const leaving = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => leaving.abort());
const ending = AbortSignal.any([leaving.signal, AbortSignal.timeout(MINUTES * 60_000)]);

// Parts end with this process, however it ends.
ending.addEventListener('abort', () => setTimeout(() => process.exit(1), ENDING_SECONDS * 1_000).unref(), {
  once: true,
});

const expected = { promoted: 1, slow_caught: 1, wer_caught: 1, quantised: 1, failed_requests: 0 };

const fleet = await startFleet(ending);
say(`smaller than in a fleet, so that it takes minutes: ${JSON.stringify(LIMITS)}`);
say(`the stack serves at ${fleet.stack.url}: ${fleet.stack.pools.map(({ name }) => name).join(', ')}`);
const operator = operatorOf(fleet);
let traffic: Traffic | undefined;
try {
  const first = await Promise.race([begin({ fleet, operator, say }), aborted(ending)]);
  traffic = await startTraffic(fleet.stack.url, fleet.identity.issuer.privateKey, { model: MODEL, phones: PHONES });
  const story: Story = { fleet, operator, traffic, figures, say, signal: ending };
  await Promise.race([play(story, first), aborted(ending)]);
} catch (error) {
  say(`stopped: ${error instanceof Error ? error.message : String(error)}`);
} finally {
  const seen = await traffic?.stop();
  figures.failed_requests += seen?.failed ?? 0;
  if (seen)
    say(
      `${seen.requests} requests, ${seen.failed} failed${seen.problems.length > 0 ? `: ${seen.problems.join('; ')}` : ''}`,
    );
  await fleet.stop();
}
const missed = Object.entries(expected).filter(([name, value]) => figures[name as keyof typeof figures] !== value);
for (const [name, value] of missed) say(`${name} is ${figures[name as keyof typeof figures]} and should be ${value}`);
process.stdout.write(asJson ? `${JSON.stringify({ figures })}\n` : `${JSON.stringify(figures, undefined, 2)}\n`);
process.exit(missed.length === 0 ? 0 : 1);

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const give = () => reject(new Error('it took too long, or was told to stop'));
    if (signal.aborted) give();
    signal.addEventListener('abort', give, { once: true });
  });
}
