// The operator's command line. It speaks plain HTTP to the edge and knows nothing that another client could not know.
import process from 'node:process';
import { type Answer, unreachable, wrong } from './answer.ts';
import { type Arguments, readArguments } from './arguments.ts';
import { audit, auditUsage, needsNobody } from './audit.ts';
import * as load from './load.ts';
import * as loadStream from './load-stream.ts';
import { model, modelUsage } from './model.ts';
import * as models from './models.ts';
import * as project from './project.ts';
import { findToken } from './token.ts';
import * as transcribe from './transcribe.ts';
import * as transcribeLive from './transcribe-live.ts';
import * as upload from './upload.ts';
import * as uploads from './uploads.ts';

type Run = (given: Arguments, headers: Record<string, string>, token: string) => Promise<Answer>;
type Verb = { usage: string; run: Run };

const runTranscribe: Run = (given, headers, token) =>
  given.live ? transcribeLive.transcribeLive(given, token, process.stderr) : transcribe.transcribe(given, headers);

const runLoad: Run = (given, headers, token) =>
  given.stream ? loadStream.loadStream(given, token) : load.load(given, headers);

const verbs = new Map<string, Verb>([
  ['transcribe', { usage: `${transcribe.usage}\n  ${transcribeLive.usage}`, run: runTranscribe }],
  ['upload', { usage: upload.usage, run: (given, headers) => upload.upload(given, headers) }],
  ['uploads', { usage: uploads.listUsage, run: (given, headers) => uploads.uploads(given, headers) }],
  ['replay', { usage: uploads.replayUsage, run: uploads.replay }],
  ['project', { usage: project.usage, run: (given, headers) => project.project(given, headers) }],
  ['load', { usage: `${load.usage}\n  ${loadStream.usage}`, run: runLoad }],
  ['audit', { usage: auditUsage, run: (given, headers) => audit(given, headers) }],
  ['model', { usage: modelUsage, run: (given, headers) => model(given, headers) }],
  ['models', { usage: models.usage, run: models.models }],
]);

const HELP = `auricle VERB [--edge URL] [--token T] [--json]

${[...verbs.values()].map((verb) => `  ${verb.usage}`).join('\n')}

  --edge URL   the edge to talk to (default: the local stack)
  --token T    access token (default: AURICLE_TOKEN, else that of the local stack)
  --json       print what the edge answered, as JSON
`;

async function answer(given: Arguments | { problem: string }): Promise<Answer> {
  if ('problem' in given) return wrong(`${given.problem}\n\n${HELP}`);
  if (given.help) return { exit: 0, text: HELP, value: { help: HELP } };
  const verb = given.verb === undefined ? undefined : verbs.get(given.verb);
  if (!verb) return wrong(given.verb === undefined ? HELP : `there is no verb "${given.verb}"\n\n${HELP}`);
  const token = findToken(given, process.env) ?? (needsNobody(given) ? '' : undefined);
  if (token === undefined)
    return wrong('no token: give --token, set AURICLE_TOKEN, or start the local stack with `npm start`');
  try {
    return await verb.run(given, { authorization: `Bearer ${token}` }, token);
  } catch (error) {
    return unreachable(given.edge, error);
  }
}

const given = readArguments(process.argv.slice(2));
const { exit, text, value } = await answer(given);
const asJson = !('problem' in given) && given.json;
const stream = exit === 0 || asJson ? process.stdout : process.stderr;
stream.write(`${asJson ? JSON.stringify(value, undefined, 2) : text}\n`);
process.exitCode = exit;
