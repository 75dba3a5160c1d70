// The command line's load and live streams against a whole stack, streams as fast as they are taken, and the example of the
// client for apps.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { commandLine } from '../../infra/cli/command-line.ts';
import { ROOT } from '../../infra/local/root.ts';
import { clipBytes, clipLike, clipPath } from './clips.ts';
import { join } from './join.ts';
import type { Shared } from './running.ts';

let running: Shared;
beforeAll(async () => {
  running = await join();
}, 60_000);

const clip = clipLike('.wav');
/** Bytes of the file's header, and of a second of its audio. */
const [HEADER, SECOND] = [44, 32_000];

async function auricle(...given: string[]): Promise<{ code: number; out: string; err: string }> {
  const { url, token } = running.stack;
  const { exit, ...printed } = await commandLine(['--edge', url, '--token', token, ...given], {});
  return { code: exit, ...printed };
}

describe('R13: auricle load', () => {
  it('concurrent callers are all served, with the seconds of the recording', async () => {
    const told = ['--audio', clipPath(clip), '--expect', clip.text];
    const given = [...told, '--parallel', '3', '--iterations', '2', '--warm-up', '1', '--json'];
    const { code, out } = await auricle('load', ...given);
    const value = JSON.parse(out);
    expect([code, value]).toMatchObject([
      0,
      { parallel: 3, requests: 6, served: 6, errors: {}, warmUp: { requests: 3, served: 3, errors: {} } },
    ]);
    expect(value.audioSeconds).toBeCloseTo((6 * (clipBytes(clip).byteLength - HEADER)) / SECOND, 1);
  });
});

describe('R13: auricle load --stream', () => {
  // A pass is under four seconds: each stream has two whole ones.
  const quick = ['--parallel', '3', '--seconds', '8', '--warm-up', '0', '--pace', 'max', '--json'];

  it('every stream ends well, and words have times', async () => {
    const given = ['--audio', clipPath(clip), '--expect', clip.text, ...quick];
    const { code, out } = await auricle('load', '--stream', ...given);
    expect([code, out], out).toEqual([0, expect.any(String)]);
    const value = JSON.parse(out);
    expect(value).toMatchObject({ parallel: 3, opened: 3, ended: 3, errors: {}, audioSeconds: 24 });
    expect(value.words).toBeGreaterThanOrEqual(3 * 2 * clip.text.split(' ').length);
    expect(value.partialLatency.p99).toBeGreaterThan(0);
    expect(value.finishLatency.p99).toBeGreaterThan(0);
  });

  it('a token that may not stream is refused, and the command fails', async () => {
    const token = await running.mint({ scope: 'models' });
    const given = ['--token', token, '--audio', clipPath(clip), ...quick];
    const { code, out } = await auricle('load', '--stream', ...given);
    expect([code, JSON.parse(out)]).toMatchObject([1, { opened: 0, errors: { scope_missing: 3 } }]);
  });
});

describe('auricle transcribe --live', () => {
  it('prints the transcript', async () => {
    const { code, out } = await auricle('transcribe', '--live', clipPath(clip), '--pace', 'max');
    expect([code, out]).toEqual([0, `${clip.text}\n`]);
  });

  it.each([
    ['a file that is no WAV', [clipPath(clipLike('.mp3'))], 'is a file of MP3'],
    ['a format of files', [clipPath(clip), '--format', 'srt'], '--format srt is for files'],
    ['an unknown pace', [clipPath(clip), '--pace', 'warp'], '--pace warp: use realtime or max'],
  ])('refuses %s in words', async (_, given, problem) => {
    const { code, err } = await auricle('transcribe', '--live', ...given);
    expect([code, err]).toEqual([2, expect.stringContaining(problem)]);
  });

  it('prints the reason of a refusal', async () => {
    const { code, err } = await auricle('transcribe', '--live', clipPath(clip), '--pace', 'max', '--model', 'nothing');
    expect(code).toBe(1);
    expect(err).toContain('the stream was refused or lost: model_unknown: The model "nothing" does not exist here.');
    expect(err).toContain('reference-en');
  });
});

describe('R1 the client for apps', () => {
  it('runs the example of its README', () => {
    const [, example = ''] =
      /```ts\n([\s\S]*?)```/.exec(readFileSync(path.join(ROOT, 'edge/client/README.md'), 'utf8')) ?? [];
    const local = example
      .replaceAll('http://127.0.0.1:8787', running.stack.url)
      .replaceAll("'./edge/", `'${ROOT}/edge/`);
    const printed = execFileSync(
      'node',
      [path.join(ROOT, 'infra/local/node.cjs'), '--input-type=module-typescript', '--eval', local],
      { cwd: ROOT, encoding: 'utf8', env: { ...process.env, TOKEN: running.stack.token } },
    );
    expect(printed.trim()).toBe(clipLike('balance.wav').text);
  });
});

describe('C10 R1 the examples of official clients', () => {
  it.each(['deepgram-live', 'openai-realtime'])('%s prints what was said', (name) => {
    const { url, token } = running.stack;
    // Evaluated, and not run where it lies: it names the address of the stack that `npm start` starts.
    const example = readFileSync(path.join(import.meta.dirname, `examples/${name}.mjs`), 'utf8')
      .replaceAll('127.0.0.1:8787', new URL(url).host)
      .replaceAll('8787', new URL(url).port);
    const printed = execFileSync('node', ['--input-type=module', '--eval', example], {
      cwd: ROOT,
      encoding: 'utf8',
      env: { ...process.env, TOKEN: token },
      timeout: 20_000,
    });
    expect(printed.trim()).toBe(clipLike('balance.wav').text);
  });
});
