// `npm start`: the local stack in the foreground, until Ctrl-C or the end of its launcher.
import process from 'node:process';
import { announce } from './announce.ts';
import { readArguments, USAGE } from './arguments.ts';
import { setNames } from './names.ts';
import { readModels } from './serving.ts';
import { type Stack, startStack } from './stack.ts';
import { StartProblem } from './start-problem.ts';
import { createTerminal } from './terminal.ts';

/** Interval of checks that the launcher lives, ms. */
const LOOK_MS = 500;

/** Variables that name a collector of traces; none are set by default. */
const collector = Object.fromEntries(
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_TRACES_SAMPLER_ARG'].flatMap((name) => {
    const value = process.env[name];
    return value ? [[name, value]] : [];
  }),
);

const given = readArguments(process.argv.slice(2));
if ('problem' in given) {
  console.error(`${USAGE}\n${given.problem}`);
  process.exit(2);
}
if (given.help) {
  console.log(USAGE);
  process.exit(0);
}

let stack: Stack | undefined;
const terminal = createTerminal(process.stdout, given.verbose);
let leaving = false;
const starting = new AbortController();

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void leave(signal));
watchLauncher();

try {
  const onProgress = (line: string) => void process.stderr.write(`${line}\n`);
  stack = await startStack({
    ...given,
    collector,
    poolsInTurn: true,
    signal: starting.signal,
    onLine: terminal.line,
    onProgress,
  });
  const serves = stack.parts.includes('edge') && stack.pools.length > 0;
  // The stack serves its models without them.
  if (serves) await setNames(stack.url, stack.token).catch((error) => console.error(`names: ${error.message}`));
  if (leaving) await stack.stop().then(() => process.exit(0));
  const models = serves ? await readModels(stack) : [];
  terminal.serving(announce(stack, models));
} catch (error) {
  terminal.clear();
  // Stopped while starting: startStack has cleaned up, and the stop was requested.
  if (leaving) process.exit(0);
  console.error(error instanceof StartProblem ? error.message : error);
  process.exit(1);
}

async function leave(signal?: NodeJS.Signals): Promise<void> {
  // A second Ctrl-C means "now": the parts notice the end of this process and end themselves. A SIGTERM may
  // come twice without urgency: passed on by npm, and for npm's own end.
  if (leaving && signal === 'SIGINT') process.exit(130);
  if (leaving) return;
  leaving = true;
  starting.abort();
  if (stack === undefined) return;
  await stack.stop();
  process.exit(0);
}

/** Ends the stack with its launcher, which runs this file as a child. */
function watchLauncher(): void {
  const launcher = Number(process.env.AURICLE_LAUNCHER);
  if (!launcher) return;
  const watch = setInterval(() => {
    if (process.ppid === launcher) return;
    clearInterval(watch);
    void leave();
  }, LOOK_MS).unref();
}
