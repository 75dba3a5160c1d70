import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openGate } from '../../../functions/registry/gate.ts';
import { buildModel } from '../../../infra/cli/models/build.ts';
import type { Inference, InferOutcome } from '../../../infra/pool/agent/engine/engine.ts';
import { checkLoad, differenceOf, engineClient } from '../../../infra/pool/model-build/measure/check-load.ts';
import { MEASURE_STREAM_STEPS } from '../../../infra/pool/model-build/measure/check-streams.ts';
import {
  MEASURE_STREAMS,
  MEASURE_WINDOW_REQUESTS,
  MEASURE_WINDOWS_MAX,
} from '../../../infra/pool/model-build/measure/limits.ts';
import { type Cut, measureWindows } from '../../../infra/pool/model-build/measure/measure-latency.ts';
import { measureQuality } from '../../../infra/pool/model-build/measure/measure-quality.ts';
import { readList, readRecordings, spread } from '../../../infra/pool/model-build/measure/recordings.ts';
import { readRevision } from '../../../infra/pool/model-build/measure/revision.ts';
import { scanRevision } from '../../../infra/pool/model-build/measure/scan-revision.ts';
import { problem } from '../../../infra/pool/model-build/problem.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import type { ModelConfig } from '../../../infra/pool/models/config/schema.ts';
import { int32Tensor } from '../../../shared/kserve/tensor.ts';
import { type Evidence, evaluateEvidence, MODEL_SPEAKERS_MAX } from '../../../shared/registry/evidence.ts';
import { QUALITY_SPEAKERS, QUALITY_UTTERANCES } from '../../../shared/registry/quality.ts';
import { ok } from '../../../shared/result.ts';
import { startFakeEngine, tokens } from '../../fake/engine.ts';
import { voice, wavFile } from '../agent/fixtures.ts';
import { folderForTest } from '../local/folder.ts';
import { onnxOf } from './sources.ts';

const TOOL = 'test';

function write(folder: string, files: Readonly<Record<string, string | Uint8Array>>): string {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  return folder;
}

const parameter = (key: string, value: string) => `parameters { key: "${key}" value { string_value: "${value}" } }\n`;
const tensor = (kind: string, name: string, type: string, dims: string) =>
  `${kind} [ { name: "${name}" data_type: TYPE_${type} dims: [ ${dims} ] } ]\n`;
/** Configuration of the engine double, which has no network. */
const ensemble = (letters = tokens.length) => `
  platform: "ensemble" max_batch_size: 8
  ${tensor('input', 'AUDIO', 'FP32', '-1')}${tensor('input', 'AUDIO_LENGTH', 'INT32', '1')}
  ${tensor('output', 'LOG_PROBS', 'FP32', `-1, ${letters}`)}${tensor('output', 'FRAMES', 'INT32', '1')}
  ensemble_scheduling { }
  ${parameter('language', 'en')}${parameter('sample_rate', '16000')}${parameter('frame_milliseconds', '40')}
  ${parameter('vocabulary', 'tokens.txt')}`;
const named = tokens.map((token, at) => (at === 0 ? '<blank>' : token === ' ' ? '<space>' : token)).join('\n');

const network = { 'speech/config.pbtxt': 'backend: "onnxruntime"\n'.concat(parameter('task', 'infer')) };
async function scan(files: Readonly<Record<string, string | Uint8Array>>) {
  const folder = write(folderForTest(), { ...network, ...files });
  const revision = await readRevision(folder, 'speech');
  if (!revision.ok) throw new Error(revision.refusal.text);
  return scanRevision(revision.value, TOOL);
}

describe('A15 scan: every file of a revision', () => {
  it('passes allowed files, including weights beside their network', async () => {
    const found = await scan({
      'speech/1/model.onnx': onnxOf({ location: 'weights.of-it' }),
      'speech/1/weights.of-it': new Uint8Array(16),
      'speech/labels.txt': 'one\n',
      'speech/1/.gitkeep': '',
    });
    expect(found).toMatchObject({ verdict: 'PASS', facts: { networks: 1, files: 5 } });
    expect(found.facts.revision).toMatch(/^sha256:/);
  });

  it.each([
    ['an operator of elsewhere', { 'speech/1/model.onnx': onnxOf({ domain: 'evil' }) }, 'unsafe'],
    ['a network that is none', { 'speech/1/model.onnx': 'weights' }, 'unreadable'],
    ['a file of no known kind', { 'speech/1/model.py': 'import os' }, 'unsafe'],
    ['weights that are not there', { 'speech/1/model.onnx': onnxOf({ location: 'w' }) }, 'unreadable'],
    ['a configuration that is none', { 'speech/configs/gpu.pbtxt': 'run: "it"' }, 'unreadable'],
  ])('fails %s', async (_, files, kind) => {
    const found = await scan(files as Record<string, string | Uint8Array>);
    expect(found).toMatchObject({ verdict: 'FAIL', facts: { problem: expect.stringMatching(`^${kind}: `) } });
  });

  it('a link, behind which anything may lie, is never passed', async () => {
    const folder = write(folderForTest(), { ...network, 'speech/1/model.onnx': onnxOf() });
    mkdirSync(path.join(folder, 'speech/2'));
    symlinkSync('../1/model.onnx', path.join(folder, 'speech/2/model.onnx'));
    const rule = expect.stringContaining('speech/2/model.onnx is neither a file nor a folder');
    expect(await readRevision(folder, 'speech')).toMatchObject({ refusal: { kind: 'unreadable', text: rule } });
  });
});

describe('A15 load: the engine’s description', () => {
  const none = async () => ({ ok: false, retryable: false, detail: 'no request is expected' }) as const;
  const configOf = (text: string): ModelConfig => {
    const parsed = parseText(text);
    if (!parsed.ok) throw new Error(parsed.refusal.reason);
    return parsed.value;
  };

  async function load(text: string, prepare: (double: Awaited<ReturnType<typeof startFakeEngine>>) => void = () => {}) {
    const double = await startFakeEngine();
    onTestFinished(double.stop);
    prepare(double);
    const folder = write(folderForTest(), { 'test-en/config.pbtxt': text, 'test-en/tokens.txt': named });
    const revision = await readRevision(folder, 'test-en');
    if (!revision.ok) throw new Error(revision.refusal.text);
    return checkLoad(revision.value, { fetchPage: engineClient(double.url), infer: none }, TOOL);
  }

  it('passes when it is ready and describes itself as its folder does', async () => {
    expect(await load(ensemble())).toMatchObject({ verdict: 'PASS', facts: { models: 1 } });
  });

  it('fails another alphabet than the folder has', async () => {
    expect(await load(ensemble(7))).toMatchObject({
      verdict: 'FAIL',
      facts: { problem: expect.stringContaining('LOG_PROBS FP32[-1,-1,29]') },
    });
  });

  it('fails an unready engine and an unreachable one', async () => {
    const unready = await load(ensemble(), (double) => {
      double.ready = false;
    });
    expect(unready.verdict).toBe('FAIL');
    const parts = new Map([['test-en', configOf(ensemble())]]);
    const model = { folder: '', description: { revision: 'sha256:0' } } as never;
    const gone = await checkLoad({ model, parts }, { fetchPage: async () => undefined, infer: none }, TOOL);
    expect(gone).toMatchObject({ verdict: 'FAIL', facts: { problem: 'the engine does not answer' } });
  });

  /** An engine of `test-en` and its streams, which answers a step as `step` says; `beside` counts open recordings. */
  async function loadStreams(step: (frames: ReturnType<typeof answer>, beside: number) => InferOutcome) {
    const parts = new Map<string, ModelConfig>();
    const live = { model: 'test-en-stream', windowSamples: 5360, hopSamples: 5120 };
    const model = { folder: '', description: { name: 'test-en', revision: 'sha256:0' }, live } as never;
    let beside = 0;
    const infer = async ({ model: name, inputs, sequence }: Inference): Promise<InferOutcome> => {
      const frames = answer((inputs[0]?.bytes.byteLength ?? 0) / 4);
      if (name === live.model) {
        await Promise.resolve();
        return sequence ? step(frames, beside) : { ok: false, retryable: false, detail: 'no sequence' };
      }
      beside += 1;
      await new Promise(setImmediate);
      beside -= 1;
      return frames;
    };
    return checkLoad({ model, parts }, { fetchPage: async () => ({ body: '{}' }), infer }, TOOL);
  }
  const answer = (samples: number) =>
    ({ ok: true, value: new Map([['FRAMES', int32Tensor('FRAMES', Int32Array.of(samples >> 9), [1, 1])]]) }) as const;
  const failed: InferOutcome = { ok: false, retryable: false, detail: 'engine status 500' };

  it('R1 passes streams that recordings do not disturb', async () => {
    const steps = MEASURE_STREAMS * MEASURE_STREAM_STEPS;
    const passed = { verdict: 'PASS', facts: { streamSteps: steps } };
    expect(await loadStreams((frames) => frames)).toMatchObject(passed);
  });

  it.each([
    ['fails beside recordings', (frames: InferOutcome, beside: number) => (beside > 0 ? failed : frames)],
    ['differs beside recordings', (frames: InferOutcome, beside: number) => (beside > 0 ? answer(1024) : frames)],
    ['always fails', () => failed],
  ])('R1 fails a model of which a stream step %s', async (_, step) => {
    const problem = expect.stringMatching(/stream steps? fail/);
    expect(await loadStreams(step)).toMatchObject({ verdict: 'FAIL', facts: { problem } });
  });

  it('the batch is a dimension only of models that have one', () => {
    const text = `${tensor('input', 'X', 'FP32', '4')}${tensor('output', 'Y', 'BF16', '-1')}`;
    const told = (shape: number[]) => ({
      name: 'm',
      platform: '',
      inputs: [{ name: 'X', datatype: 'FP32', shape }],
      outputs: [{ name: 'Y', datatype: 'BF16', shape: [-1] }],
    });
    expect(differenceOf(configOf(text), told([4]))).toBeUndefined();
    expect(differenceOf(configOf(text), told([-1, 4]))).toContain('takes X FP32[-1,4]');
  });
});

describe('A15 latency: windows until they agree', () => {
  const cut = (seconds: number): Cut => ({ seconds, utterances: [new Float32Array(1), new Float32Array(2)] });

  /** Runs requests whose duration depends on their number. */
  function trial(recordings: readonly Cut[], takes: (request: number) => number, parallel = 1) {
    let [clock, called] = [0, 0];
    const infer = async () => {
      clock += takes(called++);
      return ok(undefined);
    };
    return measureWindows({ recordings, infer, parallel, now: () => clock });
  }

  it('are times of a whole recording, for a second of it', async () => {
    expect(await trial([cut(4)], () => 10)).toEqual(ok([5, 5, 5]));
    // Below a second of audio a fixed cost dominates: counted as live traffic is.
    expect(await trial([cut(0.5)], () => 10)).toEqual(ok([20, 20, 20]));
  });

  it('the cold start falls into a window that is not judged', async () => {
    const windows = await trial([cut(1)], (request) => (request < 20 ? 100 : 10));
    expect(windows).toEqual(ok([200, 20, 20, 20]));
  });

  it('gives up on an unsteady machine with an inconclusive result', async () => {
    let last = 1;
    const windows = await trial([cut(1)], (request) => {
      if (request % (2 * MEASURE_WINDOW_REQUESTS) === 0) last *= 1.5;
      return last;
    });
    if (!windows.ok) throw new Error(windows.refusal.text);
    expect(windows.value.length).toBe(MEASURE_WINDOWS_MAX);
    const latency: Evidence = { kind: 'latency', tool: TOOL, sla: 1e30, windows: windows.value };
    expect(evaluateEvidence(latency, 0)).toBe('INCONCLUSIVE');
  });

  it('five of a hundred may be slow, more may not', async () => {
    const most = MEASURE_WINDOW_REQUESTS;
    const slow = (many: number) => trial([cut(1)], (request) => ((request / 2) % most < many ? 100 : 10));
    expect(await slow(Math.floor(0.05 * most))).toEqual(ok([20, 20, 20]));
    expect(await slow(Math.floor(0.05 * most) + 1)).toEqual(ok([200, 200, 200]));
  });

  it('several callers share a window, and a request that fails ends it', async () => {
    let called = 0;
    const infer = async () => (called++ < 3 ? ok(undefined) : problem('engine', 'gone'));
    const failed = await measureWindows({ recordings: [cut(1)], infer, parallel: 4, now: () => 0 });
    expect(failed).toEqual(problem('engine', 'gone'));
    called = Number.NEGATIVE_INFINITY;
    let many = 0;
    const counted = await measureWindows({
      recordings: [cut(1)],
      infer: async () => {
        many += 1;
        return ok(undefined);
      },
      parallel: 4,
      now: () => many,
    });
    expect(counted.ok).toBe(true);
    expect(many % (2 * MEASURE_WINDOW_REQUESTS)).toBe(0);
  });
});

describe('A15 recordings', () => {
  const row = (more: object = {}) => ({ file: 'a.wav', text: 'Hello, world', ...more });
  const speakers = (text: string) => {
    const read = readList('/set/list.json', text);
    return read.ok ? read.value.map(({ speaker }) => speaker) : read.refusal.kind;
  };

  it('are listed as JSON or lines, with speaker, voice or neither', () => {
    const rows = [row({ speaker: 'ann' }), row({ voice: 'en+f5' }), row()];
    expect(speakers(JSON.stringify(rows))).toEqual(['ann', 'en+f5', '']);
    expect(speakers(rows.map((one) => JSON.stringify(one)).join('\n'))).toEqual(['ann', 'en+f5', '']);
    expect(readList('/set/list.json', JSON.stringify(rows))).toMatchObject({ value: [{ file: '/set/a.wav' }, {}, {}] });
    const clips = path.resolve(import.meta.dirname, '../../clips/clips.json');
    expect(speakers(readFileSync(clips, 'utf8'))).toContain('en-us+linda');
  });

  it.each([
    ['nothing', '[]', 'unreadable'],
    ['no list', '{"file":', 'unreadable'],
    ['a recording in which nothing is said', JSON.stringify([row({ text: '–' })]), 'unreadable'],
    [
      'more speakers than a statement carries',
      JSON.stringify(Array.from({ length: MODEL_SPEAKERS_MAX + 1 }, (_, at) => row({ speaker: `${at}` }))),
      'bound',
    ],
  ])('are refused: %s', (_, text, kind) => expect(speakers(text)).toBe(kind));

  it('name their set by sound, text and speaker', async () => {
    const digest = async (sound: string, rows: readonly object[]) => {
      const folder = write(folderForTest(), {
        'a.wav': sound,
        'list.ndjson': rows.map((one) => JSON.stringify(one)).join('\n'),
      });
      const read = await readRecordings(folder);
      return read.ok ? read.value.digest : read.refusal.kind;
    };
    const first = await digest('RIFF', [row()]);
    expect(first).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(await digest('RIFF', [row()])).toBe(first);
    const others = [
      await digest('RIFX', [row()]),
      await digest('RIFF', [row({ text: 'Hello' })]),
      await digest('RIFF', [row({ speaker: 'ann' })]),
      await digest('RIFF', [row(), row()]),
    ];
    expect(new Set([first, ...others]).size).toBe(5);
    expect(await digest('RIFF', [row({ file: 'b.wav' })])).toBe('unreadable');
  });

  it('are sampled evenly when there are too many', () => {
    expect(spread([0, 1, 2, 3, 4, 5], 3)).toEqual([0, 2, 4]);
    expect(spread([0, 1], 3)).toEqual([0, 1]);
  });
});

describe('A15 quality: word errors of two revisions', () => {
  const listOf = (many: number, each: number) => ({
    digest: `sha256:00000007${'0'.repeat(56)}`,
    recordings: Array.from({ length: many * each }, (_, at) => ({
      file: `${at}`,
      text: 'One two, three four!',
      speaker: `s${at % many}`,
    })),
  });
  const called = { language: 'en', tool: TOOL };

  it('is counted by speaker, in words as they are counted everywhere', async () => {
    const heard = await measureQuality({ ...called, list: listOf(2, 3) }, async ({ speaker }) =>
      ok({ after: speaker === 's0' ? 'one two three' : 'ONE TWO THREE FOUR', before: 'won two three' }),
    );
    expect(heard).toEqual(
      ok({
        kind: 'quality',
        tool: TOOL,
        language: 'en',
        set: expect.stringMatching(/^sha256:/),
        seed: 7,
        speakers: [
          { utterances: 3, words: 12, before: 6, after: 3 },
          { utterances: 3, words: 12, before: 6, after: 0 },
        ],
      }),
    );
  });

  it('is absent when one recording cannot be decoded', async () => {
    const heard = await measureQuality({ ...called, list: listOf(2, 3) }, async ({ file }) =>
      file === '4' ? problem('engine', 'gone') : ok({ after: '', before: '' }),
    );
    expect(heard).toEqual(problem('engine', 'gone'));
  });

  it('measured evidence opens the first gate, worse recognition does not', async () => {
    const list = listOf(QUALITY_SPEAKERS, QUALITY_UTTERANCES);
    const evidenceOf = async (after: string): Promise<Evidence[]> => {
      const quality = await measureQuality({ ...called, list }, async () =>
        ok({ after, before: 'one two three four' }),
      );
      if (!quality.ok) throw new Error(quality.refusal.text);
      return [
        await scan({ 'speech/1/model.onnx': onnxOf() }),
        { kind: 'load', tool: TOOL, verdict: 'PASS', facts: {} },
        { kind: 'latency', tool: TOOL, sla: 100, windows: [9, 9, 9] },
        quality.value,
      ];
    };
    const gate = async (after: string) => {
      const at = Date.now();
      const [from, to] = [{ stage: 'develop-verify' }, { stage: 'grey' }] as const;
      const statement = {
        model: 'speech',
        revision: `sha256:${'0'.repeat(64)}`,
        id: '1'.repeat(64),
        from,
        to,
        at,
        evidence: await evidenceOf(after),
      };
      return openGate(statement, 'ann', { signers: ['ann'], now: at });
    };
    expect(await gate('one two three four')).toEqual(ok(0));
    expect(await gate('one two three')).toMatchObject({ refusal: { reason: 'gate_closed' } });
  });
});

describe('auricle model measure', () => {
  const measure = (...words: string[]) => buildModel(['measure', ...words]);

  it('A15 transcribes as agents do, at an engine', async () => {
    const double = await startFakeEngine();
    onTestFinished(double.stop);
    double.say = () => 'hello there';
    const folder = write(folderForTest(), {
      'models/test-en/config.pbtxt': ensemble(),
      'models/test-en/tokens.txt': named,
      'set/list.json': JSON.stringify([{ file: 'a.wav', text: 'Hello their', speaker: 'ann' }]),
      'set/a.wav': wavFile(voice(2)),
    });
    const out = path.join(folder, 'evidence.json');
    const given = [path.join(folder, 'models'), 'test-en', '--out', out, '--engine', double.url];
    const found = await measure(...given, '--recordings', path.join(folder, 'set'), '--against', double.url);
    expect(found, found.text).toMatchObject({
      exit: 0,
      value: { judged: [{ kind: 'scan' }, { kind: 'load' }, { kind: 'quality' }] },
    });
    const [, , quality] = JSON.parse(readFileSync(out, 'utf8')) as Evidence[];
    expect(quality).toMatchObject({ language: 'en', speakers: [{ utterances: 1, words: 2, before: 1, after: 1 }] });
    expect(found.text).toContain('latency: no promise is signed');
    const first = await measure(...given, '-f', '--recordings', path.join(folder, 'set'), '--against', 'none');
    expect(first.text).toContain('note: quality: nothing was before it');
    expect(first.value).toMatchObject({
      evidence: [{}, {}, { tool: expect.stringMatching(/against none$/), set: expect.any(String) }],
    });
    // Existing files are overwritten only with `-f`.
    expect((await measure(...given)).exit).toBe(7);
    expect((await measure(...given, '-f')).exit).toBe(0);
  });

  it('A15 reports invalid arguments, and the failing engine', async () => {
    const double = await startFakeEngine();
    onTestFinished(double.stop);
    const folder = write(folderForTest(), {
      'models/test-en/config.pbtxt': ensemble(),
      'models/test-en/tokens.txt': named,
      'list.json': JSON.stringify([{ file: 'a.wav', text: 'hello' }]),
      'a.wav': wavFile(voice(2)),
    });
    const out = path.join(folder, 'evidence.json');
    const given = [path.join(folder, 'models'), 'test-en', '--out', out];
    const exits = async (...words: string[]) => (await measure(...given, ...words)).exit;
    expect((await measure('models')).exit).toBe(2);
    expect(await exits('--sla', 'soon')).toBe(2);
    expect(await exits('--parallel', '0')).toBe(2);
    expect(await exits('--engine', 'https://example.com')).toBe(2);
    expect((await measure(path.join(folder, 'models'), 'none', '--out', out)).exit).toBe(3);
    double.failures = Array.from({ length: 9 }, () => 503);
    const list = ['--recordings', path.join(folder, 'list.json'), '--engine', double.url];
    expect(await exits(...list, '--against', 'none')).toBe(13);
  });
});
