import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { readRepository } from '../../../../infra/pool/agent/models/models.ts';
import type { KnownDigests } from '../../../../infra/pool/agent/models/revision.ts';
import { modelDescription } from '../../../../shared/pool/description.ts';

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  return { ...real, readFile: vi.fn(real.readFile) };
});

const folder = mkdtempSync(path.join(tmpdir(), 'auricle-models-'));
const repository = path.join(folder, 'repository');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const parameter = (key: string, value: string) => `parameters { key: "${key}" value { string_value: "${value}" } }\n`;
const ensemble = (more = '') => `
  platform: "ensemble"
  ensemble_scheduling { step [ { model_name: "network" model_version: -1 } ] }
  ${parameter('language', 'en, en-GB')}${parameter('sample_rate', '16000')}
  ${parameter('frame_milliseconds', '40')}${parameter('vocabulary', '../shared-tokens.txt')}${more}`;

function write(name: string, content: string) {
  const file = path.join(repository, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
}

beforeEach(() => {
  broken.length = 0;
  rmSync(repository, { recursive: true, force: true });
  write('speech/config.pbtxt', ensemble());
  write('network/config.pbtxt', 'platform: "onnxruntime_onnx"');
  write('network/1/model.onnx', 'weights');
  write('shared-tokens.txt', '<blank>\n');
  write('other/config.pbtxt', 'platform: "ensemble"\nensemble_scheduling { step [ { model_name: "network" } ] }');
});

const broken: string[] = [];
const read = (at = repository) =>
  readRepository(at, { now: 5_000, onBroken: (model, detail) => broken.push(`${model}: ${detail}`) });
const revision = async (at?: string) => (await read(at))[0]?.description.revision;

describe('A18: models that the agent serves', () => {
  it('are the ensembles with its parameters', async () => {
    const models = await read();
    expect(models.map(({ description }) => modelDescription.parse(description))).toEqual([
      expect.objectContaining({ name: 'speech', task: 'transcribe', languages: ['en', 'en-GB'], loaded: 5 }),
    ]);
  });

  it('C6: are those that the settings name, and a missing one is logged', async () => {
    write('second/config.pbtxt', ensemble());
    const onBroken = (model: string, detail: string) => broken.push(`${model}: ${detail}`);
    const models = await readRepository(repository, { names: ['speech', 'third'], now: 0, onBroken });
    expect(models.map(({ description }) => description.name)).toEqual(['speech']);
    expect(broken).toEqual(['third: it is not in the repository']);
  });

  it('U2: are models whose output is text, too, live unless their author forbids it', async () => {
    const text = (output: string, more = '') => `platform: "onnxruntime_onnx" max_batch_size: 1
      input { name: "AUDIO" data_type: TYPE_FP32 dims: [ -1 ] } output { name: "${output}" dims: [ -1 ] data_type: TYPE_INT32 }
      ${parameter('language', 'en')}${parameter('sample_rate', '16000')}${more}`;
    write('words/config.pbtxt', text('TEXT'));
    write('offline/config.pbtxt', text('TEXT', parameter('redecode_milliseconds', '0')));
    write('tokens/config.pbtxt', text('TOKENS', parameter('vocabulary', '../shared-tokens.txt')));
    write('wordless/config.pbtxt', text('TOKENS'));
    expect((await read()).map(({ description, live }) => [description.name, live?.hopSamples])).toEqual([
      ['offline', undefined],
      ['speech', undefined],
      ['tokens', 12_800],
      ['words', 12_800],
    ]);
    expect(broken).toEqual(['wordless: parameter vocabulary: TOKENS needs a token file']);
  });

  it('R3: name their family, and a detector the order of its languages', async () => {
    write('speech/config.pbtxt', ensemble(parameter('family', 'reference')));
    const detector = [parameter('task', 'detect'), parameter('languages', 'en,zh,yue')].join('\n');
    write('detector/config.pbtxt', `platform: "onnxruntime_onnx"\n${detector}`);
    expect((await read()).map(({ description }) => modelDescription.parse(description))).toMatchObject([
      { name: 'detector', task: 'infer', detects: true, languages: ['en', 'zh', 'yue'] },
      { name: 'speech', task: 'transcribe', family: 'reference' },
    ]);
  });

  it('U4: say what speech they hear, if their author does', async () => {
    write('speech/config.pbtxt', ensemble(parameter('hears', 'synthetic')));
    write('people/config.pbtxt', ensemble(parameter('hears', 'people')));
    write('silent/config.pbtxt', ensemble());
    expect((await read()).map(({ description }) => [description.name, description.hears])).toEqual([
      ['people', 'people'],
      ['silent', undefined],
      ['speech', 'synthetic'],
    ]);
  });

  it('have a revision that any of their files changes, wherever they lie', async () => {
    const first = await revision();
    const copy = path.join(folder, 'copy');
    cpSync(repository, copy, { recursive: true });
    expect(await revision(copy)).toBe(first);
    write('other/more.txt', 'not theirs');
    expect(await revision()).toBe(first);
    const seen = new Set([first]);
    write('network/1/model.onnx', 'other weights');
    seen.add(await revision());
    write('shared-tokens.txt', '<blank>\na\n');
    seen.add(await revision());
    write('speech/1/readme.txt', '');
    seen.add(await revision());
    expect(seen.size).toBe(4);
  });

  it('are left out when they name a missing file, and the others served', async () => {
    write('cut/config.pbtxt', ensemble(parameter('language_model', 'missing.gz')));
    expect((await read()).map(({ description }) => description.name)).toEqual(['speech']);
    expect(broken).toEqual([expect.stringMatching(/^cut: .*missing\.gz/)]);
  });

  it('are logged with a reason when they have parameters but cannot be served', async () => {
    const wrong = (text: string) => ensemble().replace('string_value: "16000"', text);
    write('rate/config.pbtxt', wrong('string_value: "8000"'));
    write('typo/config.pbtxt', 'platfrom: "ensemble"');
    write('task/config.pbtxt', ensemble(parameter('task', 'translate')));
    write('notes/readme.txt', 'no model');
    expect((await read()).map(({ description }) => description.name)).toEqual(['speech']);
    expect(broken.map((line) => line.split(/: /)[0])).toEqual(['rate', 'task', 'typo']);
    expect(broken.join('\n')).toMatch(
      /^rate: parameter sample_rate.*\ntask: parameter task.*\ntypo: .*line 1.*platfrom/,
    );
  });

  it('are digested by pieces, as a network may be larger than memory', async () => {
    vi.mocked(readFile).mockClear();
    expect(await revision()).toMatch(/^sha256:[0-9a-f]{64}$/);
    const whole = vi.mocked(readFile).mock.calls.map(([file]) => path.basename(String(file)));
    expect(new Set(whole)).toEqual(new Set(['config.pbtxt']));
  });

  it('are cached when unchanged, and read again when changed', async () => {
    const digests: KnownDigests = new Map();
    const again = async () =>
      (await readRepository(repository, { now: 0, onBroken: () => {}, digests }))[0]?.description.revision;
    const first = await again();
    const known = new Map(digests);
    expect(await again()).toBe(first);
    expect([...digests.values()].every((entry) => [...known.values()].includes(entry))).toBe(true);
    write('network/1/model.onnx', 'others!');
    expect(await again()).not.toBe(first);
  });

  describe('that speak (T3)', () => {
    const voice = (more: Record<string, string> = {}) => {
      const given = {
        task: 'speak',
        language: 'en',
        sample_rate: '16000',
        voices: 'ann, bob',
        symbols: ' ab',
        ...more,
      };
      return `platform: "onnxruntime_onnx"\n${Object.entries(given)
        .map(([key, value]) => parameter(key, value))
        .join('')}`;
    };

    it('are no ensembles, have the task "synthesize", and recognise nothing', async () => {
      write('voice/config.pbtxt', voice());
      const found = (await read()).find(({ description }) => description.name === 'voice');
      expect(modelDescription.parse(found?.description)).toMatchObject({ task: 'synthesize', languages: ['en'] });
      expect(found).toMatchObject({ speech: { voices: ['ann', 'bob'], symbols: ' ab' } });
      expect(found?.parameters).toBeUndefined();
    });

    it.each([
      ['language', 'de'],
      ['sample_rate', '22050'],
      ['voices', 'ann,ann'],
      ['voices', 'ann,'],
      ['symbols', 'ab'],
      ['symbols', ' aa'],
    ])('are broken with %s "%s"', async (key, value) => {
      write('voice/config.pbtxt', voice({ [key]: value }));
      expect((await read()).map(({ description }) => description.name)).toEqual(['speech']);
      expect(broken).toEqual([expect.stringMatching(new RegExp(`^voice: parameter ${key}: `))]);
    });
  });

  describe('that hear live streams (R1, A4)', () => {
    const stream = (more: string) => `
      platform: "ensemble"
      ensemble_scheduling { step [ { model_name: "memory" model_version: -1 } ] }
      ${more}`;
    beforeEach(() => {
      write('speech/config.pbtxt', ensemble(parameter('stream_model', 'speech-stream')));
      write(
        'speech-stream/config.pbtxt',
        stream(parameter('window_milliseconds', '335') + parameter('hop_milliseconds', '320')),
      );
      write('memory/config.pbtxt', 'platform: "onnxruntime_onnx"');
      write('memory/1/model.onnx', 'weights');
    });

    it('name their other half, which is not served under its own name', async () => {
      const models = await read();
      expect(models.map(({ description, live }) => [description.name, live])).toEqual([
        ['speech', { model: 'speech-stream', windowSamples: 5_360, hopSamples: 5_120 }],
      ]);
      expect(broken).toEqual([]);
    });

    it('use windows of 300 ms, 100 ms apart, by default', async () => {
      write('speech-stream/config.pbtxt', stream(''));
      expect((await read())[0]?.live).toEqual({ model: 'speech-stream', windowSamples: 4_800, hopSamples: 1_600 });
    });

    it('have a revision that the other half changes, too', async () => {
      const first = await revision();
      write('memory/1/model.onnx', 'other weights');
      expect(await revision()).not.toBe(first);
    });

    it('are broken without it, or with windows that leave sound out', async () => {
      write(
        'speech-stream/config.pbtxt',
        stream(parameter('window_milliseconds', '100') + parameter('hop_milliseconds', '320')),
      );
      expect(await read()).toEqual([]);
      rmSync(path.join(repository, 'speech-stream'), { recursive: true });
      expect(await read()).toEqual([]);
      expect(broken).toEqual([
        'speech: speech-stream: a hop is at most a window, and that at most an utterance',
        'speech: parameter stream_model: there is no speech-stream',
      ]);
    });
  });
});
