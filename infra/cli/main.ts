// The operator's command line. It speaks plain HTTP to the edge and knows nothing that another client could not know.
import process from 'node:process';
import { type Answer, unreachable, wrong } from './answer.ts';
import { type Arguments, readArguments } from './arguments.ts';
import { audit, auditUsage, needsNobody, problemOfVerb } from './audit.ts';
import * as load from './load.ts';
import { untilInterrupted } from './load-progress.ts';
import * as loadStream from './load-stream.ts';
import { isLocal, model, modelUsage } from './model.ts';
import { buildModel, buildUsage, isBuildVerb } from './model-build.ts';
import * as models from './models.ts';
import * as project from './project.ts';
import { findToken, isToken } from './token.ts';
import * as transcribe from './transcribe.ts';
import * as transcribeLive from './transcribe-live.ts';
import * as upload from './upload.ts';
import * as uploads from './uploads.ts';

type Run = (given: Arguments, headers: Record<string, string>, token: string) => Promise<Answer>;
/** `does`: a line of the list of verbs; `says`: what the words of its answer mean, a line each. */
type Verb = { does: string; usage: string; says?: string; run: Run };

const runTranscribe: Run = (given, headers, token) =>
  given.live ? transcribeLive.transcribeLive(given, token, process.stderr) : transcribe.transcribe(given, headers);

const runLoad: Run = (given, headers, token) => {
  const watched = { signal: untilInterrupted(), screen: process.stderr };
  return given.stream ? loadStream.loadStream(given, token, watched) : load.load(given, headers, watched);
};

const verbs = new Map<string, Verb>([
  [
    'transcribe',
    {
      does: 'a recording or live sound becomes text',
      usage: `${transcribe.usage}\n  ${transcribeLive.usage}`,
      run: runTranscribe,
    },
  ],
  [
    'upload',
    {
      does: 'the same through storage and queue, for long files',
      usage: upload.usage,
      run: (given, headers) => upload.upload(given, headers),
    },
  ],
  [
    'uploads',
    {
      does: 'files that were handed in: list, state, transcript, cancel, again',
      usage: uploads.listUsage,
      run: (given, headers) => uploads.uploads(given, headers),
    },
  ],
  [
    'replay',
    { does: 'jobs that nobody could finish go back into their queue', usage: uploads.replayUsage, run: uploads.replay },
  ],
  [
    'project',
    {
      does: 'text becomes sound, a document at a time',
      usage: project.usage,
      run: (given, headers) => project.project(given, headers),
    },
  ],
  [
    'load',
    {
      does: 'throughput and latency, of recordings and of live streams',
      usage: `${load.usage}\n  (${load.meaning})\n  ${loadStream.usage}`,
      says: loadStream.explanation,
      run: runLoad,
    },
  ],
  [
    'audit',
    {
      does: 'the transparency log: look, search, export, verify, erase',
      usage: auditUsage,
      run: (given, headers) => audit(given, headers),
    },
  ],
  [
    'model',
    {
      does: 'revisions: build, sign, promote through the gates, roll back',
      usage: `${buildUsage}\n  ${modelUsage}`,
      run: (given, headers) => model(given, headers),
    },
  ],
  ['models', { does: 'what the pools serve now', usage: models.usage, run: models.models }],
]);

const OPTIONS = `  --edge URL   the edge to talk to (default: the local stack)
  --token T    access token (default: AURICLE_TOKEN, else that of the local stack)
  --json       print what the edge answered, as JSON
`;

const HELP = `auricle VERB [--edge URL] [--token T] [--json]

${[...verbs].map(([name, { does }]) => `  ${name.padEnd(12)} ${does}`).join('\n')}

  auricle VERB --help says more.

${OPTIONS}`;

const helpOf = (verb: Verb | undefined): string =>
  verb
    ? `auricle ${[verb.usage.replaceAll('\n  ', '\n        '), verb.says, OPTIONS].filter(Boolean).join('\n\n')}`
    : HELP;

const isLocalModel = ({ verb, operands }: Arguments): boolean => verb === 'model' && isLocal(operands);
/** Verbs of this machine have no edge and no token. */
const helpOfLocal = (verb: Verb | undefined): string =>
  helpOf(verb).replace(OPTIONS, '  --json       the answer as JSON\n');

async function answer(given: Arguments | { problem: string }): Promise<Answer> {
  if ('problem' in given) return wrong(`${given.problem}; \`auricle --help\` lists the verbs`);
  const verb = given.verb === undefined ? undefined : verbs.get(given.verb);
  const help = isLocalModel(given) && given.operands.length > 0 ? helpOfLocal(verb) : helpOf(verb);
  if (given.help) return { exit: 0, text: help, value: { help } };
  if (!verb) return wrong(given.verb === undefined ? HELP : `there is no verb "${given.verb}"\n\n${HELP}`);
  const unknown = given.verb === 'audit' ? problemOfVerb(given) : undefined;
  if (unknown !== undefined) return wrong(unknown);
  const token = findToken(given, process.env) ?? (needsNobody(given) || isLocalModel(given) ? '' : undefined);
  if (token === undefined)
    return wrong('no token: give --token, set AURICLE_TOKEN, or start the local stack with `npm start`');
  if (token !== '' && !isToken(token))
    return wrong('the token cannot be one: it has spaces, line breaks or other characters that no token has');
  try {
    return await verb.run(given, { authorization: `Bearer ${token}` }, token);
  } catch (error) {
    return unreachable(given.edge, error);
  }
}

const words = process.argv.slice(2);
const asked = words.filter((word) => word !== '--json');
// Models are built here: no edge, no token, and options of their own.
const given = asked[0] === 'model' && isBuildVerb(asked[1]) ? undefined : readArguments(words);
const { exit, text, value, note } = given ? await answer(given) : await buildModel(asked.slice(1));
const asJson = given ? !('problem' in given) && given.json : asked.length < words.length;
const stream = exit === 0 || asJson ? process.stdout : process.stderr;
stream.write(`${asJson ? JSON.stringify(value, undefined, 2) : text}\n`);
if (note !== undefined) process.stderr.write(`${note}\n`);
process.exitCode = exit;
