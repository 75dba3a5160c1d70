// Announcement of a serving stack: its addresses, its models, and commands that work when pasted.
import { existsSync, readdirSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { HOST } from './ports.ts';
import { ROOT } from './root.ts';
import type { Served } from './serving.ts';
import type { Stack } from './stack.ts';

const CLIPS = path.join(ROOT, 'test/clips');

const near = (file: string) => {
  const relative = path.relative(process.cwd(), file);
  return relative.startsWith('..') ? file : relative;
};

/** Text by the speech that a model was trained on, which decides whether it suits the voice of a caller. */
const HEARS = {
  people: 'hears people: yes',
  synthetic: 'hears people: no, it is a demonstration on synthetic voices',
} as const;

function modelLine({ id, task, hears }: Served): string {
  if (task !== 'transcribe') return `${id.padEnd(20)} ${task === 'synthesize' ? 'speaks' : 'takes tensors'}`;
  return `${id.padEnd(20)} ${hears ? HEARS[hears] : 'hears people: unknown, its author does not say'}`;
}

/** Returns the way to a model for people, where each model that is served is a demonstration. */
const hintLines = (models: readonly Served[]): string[] =>
  models.some(({ hears }) => hears === 'synthetic') && !models.some(({ hears }) => hears === 'people')
    ? under('', ['to speak into it: npm start -- --models natural'])
    : [];

/** Returns the names that stand for each model, for clients that name no other. */
function nameLines(models: readonly Served[]): string[] {
  const named = Map.groupBy(
    models.filter(({ root }) => root !== undefined),
    ({ root }) => root,
  );
  return [...named].map(([root, names]) => `${names.map(({ id }) => id).join(', ')} → ${root}`);
}

/** Returns lines with a heading before the first. */
const under = (heading: string, lines: readonly string[]): string[] =>
  lines.map((line, index) => `  ${(index === 0 ? heading : '').padEnd(8)} ${line}`);

/** Returns the addresses of this machine in its networks, with what reaching it there means. */
function networkLines(port: string): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const reachable = addresses.filter(({ family, internal }) => family === 'IPv4' && !internal);
  return [
    ...reachable.map(({ address }) => `http://${address}:${port}`),
    'WARNING: every machine of the network reaches the edge; tokens and sound travel unencrypted.',
    'Browsers give their microphone to https and localhost only.',
  ];
}

type Facts = Omit<Stack, 'pid' | 'isReady' | 'kill' | 'stop'>;

export function announce(stack: Facts, models: readonly Served[]): string {
  const joined = new Set(models.flatMap(({ pools = [] }) => pools));
  const state = path.dirname(stack.tokenFile);
  const { port } = new URL(stack.url);
  const lines = [
    '',
    `Auricle serves on ${stack.url} after ${(stack.readyMs / 1_000).toFixed(1)} s`,
    '',
    ...(stack.open ? under('network', networkLines(port)) : []),
    ...under('token', [near(stack.tokenFile)]),
    ...under('models', models.filter(({ root }) => root === undefined).map(modelLine)),
    ...hintLines(models),
    ...under('names', nameLines(models)),
    ...under(
      'pools',
      stack.pools.map(
        ({ name, platform, region, zone, device }) =>
          `${name} (${[platform, region, `zone ${zone}`, ...(device ? [`${device} double`] : [])].join(', ')}), ` +
          `http://${HOST}:${stack.ports[`agent-${name}`]}/metrics, ` +
          `engine http://${HOST}:${stack.ports[`engine-${name}`]}${joined.has(name) ? '' : ', starting'}`,
      ),
    ),
    ...(stack.engine === 'triton' ? under('engine', ['Triton, one in each pool']) : []),
    ...under('metrics', [`${stack.url}/metrics, with the token`]),
    ...under('logs', [near(path.join(state, 'logs'))]),
    '',
    ...commandsOf(stack, models),
    'Ctrl-C stops it. A line per request follows.',
    '',
  ];
  return lines.join('\n');
}

/** Returns commands to paste: one by the API, and what follows it. */
function commandsOf({ url, tokenFile }: Facts, models: readonly Served[]): string[] {
  const clip =
    existsSync(CLIPS) &&
    readdirSync(CLIPS)
      .sort()
      .find((name) => name.endsWith('.wav'));
  const model =
    models.find(({ id }) => id === 'reference-en') ??
    models.find(({ task, root }) => task === 'transcribe' && root === undefined);
  if (!clip || !model) return [];
  const file = near(path.join(CLIPS, clip));
  const state = path.dirname(tokenFile);
  const own = state === path.join(ROOT, '.auricle') ? '' : ` --state ${near(state)}`;
  const named = model.id === 'reference-en' ? '' : ` --model ${model.id}`;
  return [
    'Try it:',
    '',
    `  curl -F model=${model.id} -F file=@${file} ${url}/v1/audio/transcriptions \\`,
    `    -H "authorization: Bearer $(cat ${near(tokenFile)})"`,
    '',
    `  npx auricle transcribe --live ${file}${named}${own}`,
    `  npx auricle logs --follow${own}`,
    '',
  ];
}
