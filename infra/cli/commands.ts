// The table of commands: the parser, the help and the dispatch read it. Each module is loaded when its command runs.
import process from 'node:process';
import { auditCommands } from './audit/commands.ts';
import type { Command } from './command.ts';
import { deployCommands } from './deploy/commands.ts';
import { buildCommands } from './models/build-commands.ts';
import { modelCommands } from './models/commands.ts';
import type { OptionName } from './options.ts';

const speech = ['model', 'language'] as const;
const measured = `partial ms   from the end of a word, as it was sent, to the first event that shows it
final ms     from the end of the last word of an utterance to its final text
finish ms    from the last frame of a stream to its last word`;

const uploads: Command['run'] = async (given, headers) => (await import('./jobs/uploads.ts')).uploads(given, headers);
const project: Command['run'] = async (given, headers) => (await import('./jobs/project.ts')).project(given, headers);
const spoken = ['plain', 'wait', 'out'] as const;

const plainCommands: readonly Command[] = [
  {
    name: 'transcribe',
    operands: 'FILE',
    does: 'transcribes a recording or live audio',
    takes: [...speech, ['format', 'json, text, srt, vtt or verbose_json; with --live text'], 'live', 'pace'],
    run: async (given, headers, token) =>
      given.live
        ? (await import('./live/transcribe-live.ts')).transcribeLive(given, token, process.stderr)
        : (await import('./live/transcribe.ts')).transcribe(given, headers),
  },
  {
    name: 'upload',
    operands: 'FILE…',
    does: 'transcribes long files through storage and queue; the same command resumes after a break',
    takes: [...speech, 'zone', 'callback', 'plain', 'wait', 'format', 'keepDays'],
    more: `FILE may be a folder: its files are sent, without subfolders and names that begin with a dot. Several files
are sent eight at a time; the exit code is 1 when one failed, and each failure has a line with its reason.`,
    run: async (given, headers) => {
      const { namesMany, uploadMany } = await import('./jobs/upload-many.ts');
      if (!(await namesMany(given.operands))) return (await import('./jobs/upload.ts')).upload(given, headers);
      const { realEnv } = await import('./jobs/upload-env.ts');
      return uploadMany(given, headers, realEnv(), process.stderr);
    },
  },
  { name: 'uploads', does: 'lists uploads', run: uploads },
  { name: 'uploads status', operands: 'ID', does: 'shows the progress of an upload', run: uploads },
  {
    name: 'uploads wait',
    operands: 'ID',
    does: 'waits for an upload and prints its transcript',
    takes: ['format'],
    run: uploads,
  },
  { name: 'uploads cancel', operands: 'ID', does: 'cancels an upload, or deletes its files', run: uploads },
  { name: 'uploads rerun', operands: 'ID', does: 'transcribes the same audio again', run: uploads },
  {
    name: 'replay',
    does: 'sends dead-letter jobs to their queue again',
    takes: ['zone'],
    run: async (given, headers) => (await import('./jobs/uploads.ts')).replay(given, headers),
  },
  {
    name: 'project',
    operands: 'FILE',
    does: 'speaks a text: FILE.txt, or FILE.json with documents of blocks',
    takes: [
      ['model', 'model that speaks; default voice-en'],
      'voice',
      'rate',
      'language',
      'zone',
      'callback',
      ...spoken,
    ],
    run: project,
  },
  { name: 'project list', does: 'lists projects', run: project },
  { name: 'project status', operands: 'ID', does: 'shows the progress of a project', run: project },
  { name: 'project delete', operands: 'ID', does: 'cancels a project and deletes its files', run: project },
  { name: 'project rerun', operands: 'ID', does: 'runs failed documents again', run: project },
  {
    name: 'project save',
    operands: 'ID',
    does: 'waits for a project and saves its audio',
    takes: ['out'],
    run: project,
  },
  {
    name: 'project edit',
    operands: 'ID DOCUMENT SEGMENT TEXT',
    does: 'replaces the text of one segment and speaks it',
    takes: spoken,
    run: project,
  },
  {
    name: 'load',
    does: 'measures throughput and latency of recordings, or with --stream of live streams',
    takes: [
      ...['audio', 'parallel', 'iterations', 'warmUp', 'expect', ...speech, 'format'],
      ...['stream', 'seconds', 'pace'],
    ] as OptionName[],
    more: `Each of --parallel callers makes --warm-up requests that do not count, then --iterations that do: 32 × 64 are 2048.
The exit code is 0 when every request was served, or every stream ended well, with the expected words.

${measured}`,
    run: async (given, headers, token) => {
      const { untilInterrupted } = await import('./progress.ts');
      const watched = { signal: untilInterrupted(), screen: process.stderr };
      return given.stream
        ? (await import('./load/stream.ts')).loadStream(given, token, watched)
        : (await import('./load/load.ts')).load(given, headers, watched);
    },
  },
  {
    name: 'logs',
    operands: '[PART]',
    does: 'shows the log of the local stack, or of one part',
    takes: ['follow', 'state'],
    local: true,
    run: async (given) => {
      const { untilInterrupted } = await import('./progress.ts');
      const write = (text: string) => void process.stdout.write(text);
      return (await import('./logs.ts')).showLogs(given, { write, signal: untilInterrupted() });
    },
  },
  {
    name: 'models',
    does: 'lists the models that the pools serve now',
    run: async (given, headers) => (await import('./models/list.ts')).models(given, headers),
  },
  {
    name: 'pools',
    does: 'lists the pools: where they are, what they serve, their load and health',
    run: async (given, headers) => (await import('./pools/pools.ts')).pools(given, headers),
  },
  {
    name: 'pool drain',
    operands: 'NAME',
    does: 'has the agents of a pool take no new work; streams move to other pools',
    takes: [['force', 'drains the last pool of a model in its zone, too']],
    more: 'An agent serves again once its process restarts.',
    run: async (given, headers) => (await import('./pools/pools.ts')).drain(given, headers),
  },
  {
    name: 'token',
    operands: '[CLAIM=VALUE…]',
    does: 'prints a token of the local stack with such claims',
    takes: ['state'],
    local: true,
    more: `A value is JSON where it can be, else text: tenant=acme zones='["eu"]' allowance.requestsPerMinute=10. Claims that
are not given are those of the developer's token. Elsewhere your identity provider makes tokens.`,
    run: async (given) => (await import('./make-token.ts')).makeToken(given),
  },
  {
    name: 'token check',
    does: 'shows the claims of --token as an edge reads them, defaults included, or why it refuses them',
    more: 'The token is sent to no one, and its signature is not verified.',
    run: async (_given, _headers, token) => (await import('./make-token.ts')).checkToken(token),
  },
  {
    name: 'usage',
    does: 'prints requests and seconds of audio of each tenant in a month, by pool, as CSV',
    takes: ['month', ['tenant', 'only this tenant']],
    more: `dollars_per_hour is an hour of audio at the pool: the price of its agents of now, as if they had run since
the month began, by all audio of the pool in the month. It is empty where an agent names no price.`,
    run: async (given, headers) => (await import('./pools/usage.ts')).usage(given, headers),
  },
  {
    name: 'route explain',
    operands: 'REQUEST',
    does: 'shows how the agents of a recent request were chosen, by its x-request-id',
    more: 'The edge stores a decision for ten minutes. Each cost is a sum of ms by term; two candidates are compared.',
    run: async (given, headers) => (await import('./pools/route.ts')).explainRoute(given, headers),
  },
];

export const commands: readonly Command[] = [
  ...plainCommands,
  ...auditCommands,
  ...deployCommands,
  ...buildCommands,
  ...modelCommands,
];

/** Returns the command that the first words name; `undefined` for a bare group such as `audit`. */
export function findCommand([first, second]: readonly string[]): Command | undefined {
  const two = second === undefined ? undefined : commands.find(({ name }) => name === `${first} ${second}`);
  return two ?? commands.find(({ name }) => name === first);
}

/** Returns the commands of a group such as `audit`: its own and those that begin with its name. */
export const groupOf = (first: string): readonly Command[] =>
  commands.filter(({ name }) => name === first || name.startsWith(`${first} `));
