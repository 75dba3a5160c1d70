import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { readRepository } from '../../../infra/pool/agent/models/models.ts';
import { build } from '../../../infra/pool/model-build/build/build.ts';
import { readCommand } from '../../../infra/pool/model-build/build/read-command.ts';
import { deploy } from '../../../infra/pool/model-build/deploy/deploy.ts';
import { readTarget } from '../../../infra/pool/model-build/deploy/targets.ts';
import { importModel } from '../../../infra/pool/model-build/import/import.ts';
import { checkTiming } from '../../../infra/pool/model-build/pipeline/timing.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { printText } from '../../../infra/pool/models/config/print-text.ts';
import { encodeModel, type Value } from '../../contract/engine/onnx-writer.ts';
import { folderForTest } from '../local/folder.ts';
import { onnxOf } from './sources.ts';

let folder: string;
const at = (name: string) => path.join(folder, name);
beforeEach(() => {
  folder = folderForTest();
});

/** A network with these inputs and outputs; its content does not matter here. */
function network(file: string, takes: readonly Value[], gives: readonly Value[]): string {
  const nodes = gives.map(({ name }) => ({ op: 'Identity', inputs: [takes[0]?.name ?? ''], outputs: [name] }));
  writeFileSync(at(file), encodeModel({ nodes, inputs: takes, outputs: gives }));
  return at(file);
}
const tensor = (name: string, type: Value['type'], ...dims: (number | string)[]): Value => ({
  name,
  type,
  dims: ['N', ...dims],
});
const ids = [
  tensor('input_ids', 'INT64', 'T'),
  tensor('attention_mask', 'INT64', 'T'),
  tensor('token_type_ids', 'INT64', 'T'),
];

function file(name: string, text = 'one\ntwo\n'): string {
  writeFileSync(at(name), text);
  return at(name);
}

async function archive(
  name: string,
  className: string,
  source: string,
  parts: Record<string, string> = {},
  graphs: Record<string, string> = {},
) {
  const made = await importModel({ source, out: at(name), classes: [className], parts, graphs }, {});
  if (!made.ok) throw new Error(made.refusal.text);
  return at(name);
}

async function run(...words: string[]) {
  const command = readCommand(words);
  return command.ok ? build(command.value, {}) : command;
}
const kindOf = (made: { ok: boolean; refusal?: { kind: string } }) => (made.ok ? 'ok' : made.refusal?.kind);

/** Every pipeline, from networks with the tensors that such models have. */
const makers: Record<string, () => Promise<string[]>> = {
  speech_recognition: async () => {
    const source = network(
      'asr.onnx',
      [tensor('AUDIO', 'FLOAT', 'S'), tensor('AUDIO_LENGTH', 'INT32', 1)],
      [tensor('LOG_PROBS', 'FLOAT', 'T', 4), tensor('FRAMES', 'INT32', 1)],
    );
    return [
      await archive('asr.amodel', 'EncDecCTCModel', source, {
        vocabulary: file('tokens.txt', '<blank>\n<space>\na\nb\n'),
      }),
    ];
  },
  speech_synthesis: async () => [
    await archive(
      'fast.amodel',
      'FastPitchModel',
      network('fast.onnx', [tensor('text', 'INT64', 'T')], [tensor('spect', 'FLOAT', 80, 'T')]),
    ),
    await archive(
      'hifi.amodel',
      'HifiGanModel',
      network('hifi.onnx', [tensor('spec', 'FLOAT', 80, 'T')], [tensor('audio', 'FLOAT', 'S')]),
    ),
  ],
  qa: async () => [
    await archive('qa.amodel', 'QAModel', network('qa.onnx', ids, [tensor('logits', 'FLOAT', 'T', 2)]), {
      vocab: file('vocab.txt'),
    }),
  ],
  token_classification: async () => [
    await archive(
      'ner.amodel',
      'TokenClassificationModel',
      network('ner.onnx', ids, [tensor('logits', 'FLOAT', 'T', 2)]),
      { vocab: file('vocab.txt'), class_labels: file('labels.csv') },
    ),
  ],
  intent_slot: async () => [
    await archive(
      'intent.amodel',
      'IntentSlotClassificationModel',
      network('intent.onnx', ids, [tensor('intent_logits', 'FLOAT', 2), tensor('slot_logits', 'FLOAT', 'T', 2)]),
      {
        vocab: file('vocab.txt'),
        intent_labels: file('intents.csv'),
        slot_labels: file('slots.csv'),
      },
    ),
  ],
  text_classification: async () => [
    await archive('text.amodel', 'TextClassificationModel', network('text.onnx', ids, [tensor('logits', 'FLOAT', 2)]), {
      vocab: file('vocab.txt'),
      class_labels: file('labels.csv'),
    }),
  ],
  punctuation: async () => [
    await archive(
      'punct.amodel',
      'PunctuationCapitalizationModel',
      network('punct.onnx', ids, [tensor('punct_logits', 'FLOAT', 'T', 4), tensor('capit_logits', 'FLOAT', 'T', 2)]),
      {
        vocab: file('vocab.txt'),
        punct_labels: file('punct.csv'),
        capit_labels: file('capit.csv'),
      },
    ),
  ],
  translation: async () => {
    const source = network('decoder.onnx', [tensor('input_ids', 'INT64', 'T')], [tensor('states', 'FLOAT', 'T', 8)]);
    const encoder = network(
      'encoder.onnx',
      [tensor('input_ids', 'INT64', 'T')],
      [tensor('last_hidden_states', 'FLOAT', 'T', 8)],
    );
    const softmax = network(
      'softmax.onnx',
      [tensor('hidden_states', 'FLOAT', 'T', 8)],
      [tensor('log_probs', 'FLOAT', 'T', 32)],
    );
    const pieces = (name: string) => {
      writeFileSync(at(name), Buffer.from('0a080a0161151234abcd', 'hex'));
      return at(name);
    };
    const made = await importModel(
      {
        source,
        out: at('nmt.amodel'),
        classes: ['MTEncDecModel'],
        role: 'decoder',
        graphs: { encoder, log_softmax: softmax },
        parts: { encoder_tokenizer: pieces('en.model'), decoder_tokenizer: pieces('de.model') },
      },
      {},
    );
    if (!made.ok) throw new Error(made.refusal.text);
    return [at('nmt.amodel')];
  },
};

const more: Record<string, string[]> = { speech_recognition: ['--language_code=en-US', '--ms_per_timestep=40'] };

describe('M2 one archive for each pipeline, and a repository of it', () => {
  it.each(Object.keys(makers))('%s', async (pipeline) => {
    const sources = (await makers[pipeline]?.()) ?? [];
    const built = await run(pipeline, at('p.apipeline'), ...sources, '--name=model', ...(more[pipeline] ?? []));
    expect(built).toMatchObject({ ok: true, value: { manifest: { kind: 'pipeline', pipeline } } });
    const targets = ['cpu', 'gpu']
      .map((name) => readTarget(name, {}))
      .flatMap((target) => (target.ok ? [target.value] : []));
    const deployed = await deploy({ archives: [at('p.apipeline')], repository: at('models'), targets }, {});
    expect(kindOf(deployed)).toBe('ok');
    const configs = readdirSync(at('models'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.pbtxt'),
    );
    for (const name of configs) {
      const text = readFileSync(path.join(at('models'), name), 'utf8');
      const read = parseText(text);
      expect(read.ok && printText(read.value), name).toBe(text);
    }
    const broken: string[] = [];
    const models = await readRepository(at('models'), {
      now: 0,
      onBroken: (model, detail) => broken.push(`${model}: ${detail}`),
    });
    expect(broken).toEqual([]);
    expect(models.length).toBe(pipeline === 'translation' ? 3 : 1);
    expect(models[0]?.description.task).toBe(pipeline === 'speech_recognition' ? 'transcribe' : 'infer');
  });

  it.each([
    ['qa', 'vocab'],
    ['token_classification', 'class_labels'],
    ['intent_slot', 'slot_labels'],
    ['punctuation', 'capit_labels'],
    ['speech_recognition', 'vocabulary'],
  ])('%s without %s is refused by name', async (pipeline, part) => {
    const classes: Record<string, string> = {
      qa: 'QAModel',
      token_classification: 'TokenClassificationModel',
      intent_slot: 'IntentSlotClassificationModel',
      punctuation: 'PunctuationCapitalizationModel',
      speech_recognition: 'EncDecCTCModel',
    };
    const parts = [
      'vocab',
      'vocabulary',
      'intent_labels',
      'punct_labels',
      'class_labels',
      'slot_labels',
      'capit_labels',
    ].filter((one) => one !== part);
    const source = network('n.onnx', ids, [tensor('logits', 'FLOAT', 'T', 2)]);
    const given = Object.fromEntries(parts.map((one) => [one, file(`${one}.txt`)]));
    const made = await archive('n.amodel', classes[pipeline] ?? '', source, given);
    expect(await run(pipeline, at('p.apipeline'), made, ...(more[pipeline] ?? []))).toMatchObject({
      refusal: { kind: 'artifact', text: expect.stringContaining(part) },
    });
    expect(existsSync(at('p.apipeline'))).toBe(false);
  });

  it('another pipeline’s model, a checkpoint without its network, tensors that do not fit', async () => {
    const qa = (await makers.qa?.()) ?? [];
    expect(await run('punctuation', at('p'), ...qa)).toMatchObject({
      refusal: { kind: 'artifact', text: 'QAModel is no model for punctuation, but for qa' },
    });
    const hifi = await archive(
      'h.amodel',
      'HifiGanModel',
      network('h.onnx', [tensor('spec', 'FLOAT', 64, 'T')], [tensor('audio', 'FLOAT', 'S')]),
    );
    const [fast = ''] = (await makers.speech_synthesis?.()) ?? [];
    expect(await run('speech_synthesis', at('p'), fast)).toMatchObject({
      refusal: { kind: 'artifact', text: expect.stringContaining('vocoder') },
    });
    expect(await run('speech_synthesis', at('p'), fast, hifi)).toMatchObject({
      refusal: { kind: 'artifact', text: expect.stringContaining('another type or shape') },
    });
  });

  it('A5 a vocabulary that is not the network’s', async () => {
    const source = network(
      'asr.onnx',
      [tensor('AUDIO', 'FLOAT', 'S'), tensor('AUDIO_LENGTH', 'INT32', 1)],
      [tensor('LOG_PROBS', 'FLOAT', 'T', 4), tensor('FRAMES', 'INT32', 1)],
    );
    const of = async (name: string, text: string, ...words: string[]) => {
      const made = await archive(`${name}.amodel`, 'EncDecCTCModel', source, { vocabulary: file(`${name}.txt`, text) });
      return kindOf(
        await run('speech_recognition', at(`${name}.p`), made, '--language_code=en', '--ms_per_timestep=40', ...words),
      );
    };
    expect(await of('short', '<blank>\n<space>\na\n')).toBe('artifact');
    expect(await of('twice', '<blank>\n<space>\na\na\n')).toBe('artifact');
    expect(await of('moved', '<space>\na\nb\n<blank>\n')).toBe('artifact');
    expect(await of('said', '<space>\na\nb\n<blank>\n', '--blank=3', '--word_boundary=0')).toBe('ok');
    expect(await of('words', '<blank>\n<space>\na\nb\n', '--decoder=flashlight')).toBe('artifact');
    expect(
      await of('many', '<blank>\n<space>\na\nb\n', `--decoding_vocab=${file('big.txt', 'w\n'.repeat(200_001))}`),
    ).toBe('bound');
  });
});

describe('M2 chunks', () => {
  it.each([
    [{ ms_per_timestep: '80', chunk_size: '0.16' }, 'ok'],
    [{ ms_per_timestep: '40', chunk_size: '0.16', left_padding_size: '1.92', right_padding_size: '1.92' }, 'ok'],
    [{ ms_per_timestep: '80', chunk_size: '0.1' }, 'timing'],
    [{ ms_per_timestep: '80', chunk_size: '0.16', left_padding_size: '0.1' }, 'timing'],
    [{ ms_per_timestep: '80', chunk_size: '0.16', right_padding_size: '0.12' }, 'timing'],
    [{ chunk_size: '0.16' }, 'timing'],
    [{ ms_per_timestep: '0', chunk_size: '0.16' }, 'timing'],
    [{ ms_per_timestep: '40', chunk_size: '300' }, 'ok'],
    [{ ms_per_timestep: '40', chunk_size: '300', streaming: 'true' }, 'timing'],
    [{}, 'ok'],
  ])('%j: %s', (settings, expected) => expect(kindOf(checkTiming(settings))).toBe(expected));
});

describe('M2 both spellings', () => {
  const classic =
    'speech_recognition -f out.rmir:k in.riva:k --name=x --language_code en-US --chunk_size=0.16 --streaming'.split(
      ' ',
    );
  const hydra =
    "--config-path=pkg://servicemaker.configs.asr --config-name=streaming output_path=out.rmir:k source_path=['in.riva:k'] force=true name=x +language_code=en-US chunk_size=0.16".split(
      ' ',
    );

  it('mean the same', () => {
    const [one, two] = [readCommand(classic), readCommand(hydra)];
    expect(one).toEqual({
      ok: true,
      value: {
        pipeline: 'speech_recognition',
        out: 'out.rmir:k',
        sources: ['in.riva:k'],
        force: true,
        settings: { name: 'x', language_code: 'en-US', chunk_size: '0.16', streaming: 'true' },
      },
    });
    expect(two).toEqual(one);
  });

  it('decoder_type sets the decoder; refused options are listed at once', () => {
    const read = readCommand([...classic, '--decoder_type=greedy']);
    expect(read.ok && read.value.settings.decoder).toBe('greedy');
    expect(kindOf(readCommand([...classic, '--decoder_type=greedy', '--decoder=greedy']))).toBe('written');
    expect(readCommand([...classic, '--whatever=1', '--wfst_tokenizer_model=a'])).toMatchObject({
      refusal: { text: expect.stringMatching(/^whatever .*; wfst_tokenizer_model /) },
    });
  });

  it.each([
    ['-f in the newer one', [...hydra, '-f']],
    ['no pipeline', ['out', 'in']],
    ['no source', ['qa', 'out']],
    ['an option twice', [...classic, '--name=y']],
    ['an option without its value', [...classic, '--name']],
    [
      'a folder of no pipeline',
      ['--config-path=pkg://configs.llm', '--config-name=x', 'output_path=a', 'source_path=[b]'],
    ],
  ])('%s', (_, words) => expect(kindOf(readCommand(words))).toBe('written'));

  it.each([
    ['--endpointing.stop_history=800', 'the agent finds where an utterance ends'],
    ['--wfst_tokenizer_model=a.far', 'inverse text normalisation'],
    ['--featurizer.use_utterance_norm_params=False', 'features are a network'],
    ['--nn.fp16_needs_obey_precision_pass', 'deploy chooses precision'],
    ['--diarizer_type=neural', 'speakers are not distinguished'],
    ['--vad.vad_type=neural', 'the agent finds where an utterance ends'],
    ['--featurizer_name=mel', 'features are a network'],
    ['--padding_size=0.5', 'left_padding_size and right_padding_size'],
    ['--voices=a', 'voices is no option of speech_recognition'],
    ['--whatever=1', 'whatever is no option of speech_recognition'],
  ])('%s is refused with its reason', async (word, reason) => {
    const [source = ''] = (await makers.speech_recognition?.()) ?? [];
    expect(await run('speech_recognition', at('p'), source, word)).toMatchObject({
      refusal: { kind: 'unsupported', text: expect.stringContaining(reason) },
    });
  });
});

it('M1 an imported network keeps external weights through build and deploy', async () => {
  writeFileSync(at('n.onnx'), onnxOf({ location: 'weights/w.bin' }));
  mkdirSync(at('weights'));
  writeFileSync(at('weights/w.bin'), Buffer.alloc(16, 7));
  const made = await archive('n.amodel', 'QAModel', at('n.onnx'), { vocab: file('vocab.txt') });
  expect(kindOf(await run('qa', at('p.apipeline'), made, '--name=m'))).toBe('ok');
  const target = readTarget('cpu', {});
  if (!target.ok) throw new Error(target.refusal.text);
  expect(
    kindOf(await deploy({ archives: [at('p.apipeline')], repository: at('models'), targets: [target.value] }, {})),
  ).toBe('ok');
  expect(readFileSync(at('models/m-network/1/weights/w.bin'))).toEqual(Buffer.alloc(16, 7));
});
