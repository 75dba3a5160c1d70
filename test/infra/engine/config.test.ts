import { describe, expect, it } from 'vitest';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import {
  enums,
  fieldShape,
  isEnum,
  isMessage,
  type MessageName,
  type ModelConfig,
  messages,
  oneofs,
} from '../../../infra/pool/models/config/schema.ts';
import { chooseVersions, settle } from '../../../infra/pool/models/config/settle.ts';
import { listUnhonoured } from '../../../infra/pool/models/config/unhonoured.ts';

function read(text: string): ModelConfig {
  const parsed = parseText(text);
  if (!parsed.ok) throw new Error(parsed.refusal.reason);
  return parsed.value;
}
const complaint = (text: string): string => {
  const parsed = parseText(text);
  return parsed.ok ? '' : parsed.refusal.reason;
};

const full = `# A comment, and every way to write a thing.
name: "asr" 'x'; platform: "onnxruntime_onnx", max_batch_size: 0x10
input [
  { name: "AUDIO" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true },
  { name: "LENGTH", data_type: 8, dims: 1 }
]
output < name: "OUT" data_type: TYPE_FP32 dims: [ - 1, 128 ] >
batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "OFFSETS" data_type: TYPE_INT32 source_input: "AUDIO" }
version_policy: { specific { versions: [1, 3] } }
dynamic_batching: {
  preferred_batch_size: [ 16, 32 ] preferred_batch_size: 64
  max_queue_delay_microseconds: 50000
  priority_levels: 2 default_priority_level: 2
  priority_queue_policy [ { key: 1 value: { timeout_action: DELAY max_queue_size: 010 } }, { key: 2 value { } } ]
}
parameters { key: "rate" value { string_value: "16\\x30\\060\\u0030" } }
metric_tags { key: "team" value: "speech" }
model_warmup [ { name: "zeroes" batch_size: 1 inputs { key: "AUDIO" value { data_type: TYPE_FP32 dims: 16000 zero_data: true } } } ]
optimization { execution_accelerators { gpu_execution_accelerator : [ { name : "tensorrt" } ] } }
`;

describe('config.pbtxt', () => {
  it('is read in all the spellings of the text format', () => {
    const config = read(full);
    expect(config).toMatchObject({ name: 'asrx', max_batch_size: 16, metric_tags: { team: 'speech' } });
    expect(config.input.map(({ name, data_type, dims }) => [name, data_type, dims])).toEqual([
      ['AUDIO', 'TYPE_FP32', [-1]],
      ['LENGTH', 'TYPE_INT32', [1]],
    ]);
    expect(config.output[0]?.dims).toEqual([-1, 128]);
    expect(config.version_policy?.specific?.versions).toEqual([1, 3]);
    expect(config.dynamic_batching).toMatchObject({
      preferred_batch_size: [16, 32, 64],
      max_queue_delay_microseconds: 50_000,
    });
    expect(config.dynamic_batching?.priority_queue_policy[1]).toMatchObject({
      timeout_action: 'DELAY',
      max_queue_size: 8,
    });
    expect(config.parameters.rate?.string_value).toBe('16000');
    expect(config.model_warmup[0]?.inputs.AUDIO).toEqual({ data_type: 'TYPE_FP32', dims: [16_000], zero_data: true });
  });

  it.each([
    ['an unknown field', 'name: "a"\nmax_bach_size: 4', "line 2: ModelConfig has no field 'max_bach_size'"],
    ['an unknown field inside', 'input {\n name: "x"\n dim: 3 }', "line 3: Input has no field 'dim'"],
    ['a field given twice', 'name: "a" name: "b"', "line 1: 'name' is given twice"],
    [
      'two schedulers',
      'dynamic_batching { }\nsequence_batching { }',
      "line 2: 'sequence_batching' cannot be given together",
    ],
    ['a wrong enum', 'input { data_type: FP32 }', 'FP32 is not a value of DataType'],
    ['a number for a text', 'name: 3', "a string was expected, got '3'"],
    ['a text for a number', 'max_batch_size: "3"', 'a number was expected'],
    ['a fraction for a whole number', 'max_batch_size: 1.5', '1.5 is not a whole number'],
    ['a negative for an unsigned', 'dynamic_batching { max_queue_delay_microseconds: -1 }', '-1 is outside uint64'],
    ['too large a number', 'max_batch_size: 2147483648', 'outside int32'],
    ['a number beyond 2^53', 'dynamic_batching { max_queue_delay_microseconds: 9007199254740993 }', '2^53'],
    ['a missing brace', 'input { name: "x"', 'a field of Input was expected, got the end of the file'],
    ['a missing colon', 'name "a"', "':' was expected"],
    ['an open string', 'name: "a', 'unexpected character'],
    ['a wrong escape', 'name: "\\q"', 'invalid escape'],
    ['a map key twice', 'metric_tags { key: "a" value: "1" } metric_tags { key: "a" value: "2" }', "the key 'a' twice"],
    ['a map entry without a key', 'metric_tags { value: "1" }', 'has no key'],
    ['a list for a single field', 'name: ["a"]', 'a string was expected'],
    ['an inherited name', '__proto__: 1 constructor: 2', "no field '__proto__'"],
  ])('refuses %s', (_, text, expected) => expect(complaint(text)).toContain(expected));

  it('has a table in which every type exists', () => {
    for (const [message, fields] of Object.entries(messages)) {
      for (const field of Object.keys(fields)) {
        const { type } = fieldShape(message as MessageName, field)!;
        const scalar = ['string', 'bool', 'int32', 'int64', 'uint32', 'uint64', 'float', 'double'].includes(type);
        expect(scalar || isEnum(type) || isMessage(type), `${message}.${field}`).toBe(true);
      }
      for (const field of oneofs[message as MessageName] ?? []) {
        expect(fieldShape(message as MessageName, field)?.optional, `${message}.${field}`).toBe(true);
      }
    }
    expect(enums.DataType.indexOf('TYPE_FP32')).toBe(11);
  });
});

const io = 'input { name: "X" data_type: TYPE_FP32 dims: -1 } output { name: "Y" data_type: TYPE_FP32 dims: -1 }';
const settled = (text: string) => settle(read(text), 'm');

const state = (more: string) =>
  `sequence_batching { state { input_name: "I" output_name: "O" data_type: TYPE_FP32 dims: 2 ${more} } }`;
const control = (more: string) => `sequence_batching { control_input { name: "C" ${more} } }`;
const wrongSequences: [string, string, string][] = [
  ['a sequence that is asked for again', 'sequence_batching { iterative_sequence: true }', 'iterative_sequence'],
  ['sequences and a cache', 'sequence_batching { } response_cache { enable: true }', 'response_cache'],
  [
    'a preferred size of sequences over the maximum',
    'sequence_batching { oldest { preferred_batch_size: 8 } }',
    'must be <= max batch size',
  ],
  ['a share over 1', 'sequence_batching { direct { minimum_slot_utilization: 1.5 } }', '(0.0, 1.0]'],
  ['more sequences than fit', 'sequence_batching { oldest { max_candidate_sequences: 99999 } }', '99999 sequences'],
  [
    'states that would fill the memory',
    'sequence_batching { oldest { max_candidate_sequences: 4000 } state { input_name: "I" output_name: "O" data_type: TYPE_FP32 dims: 1000000 } }',
    'the states of 4000 sequences take',
  ],
  ['a state without an output', 'sequence_batching { state { input_name: "I" } }', "'output_name'"],
  ['a state of an input', state('').replace('"I"', '"X"'), "'X': the model has another input"],
  ['a state without a type', state('').replace('TYPE_FP32', 'TYPE_INVALID'), "must specify 'data_type'"],
  ['a state of texts', state('').replace('TYPE_FP32', 'TYPE_STRING'), 'no texts'],
  ['an initial state of another type', state('initial_state { name: "z" zero_data: true }'), 'does not match'],
  [
    'an initial state without a name',
    state('initial_state { data_type: TYPE_FP32 dims: 2 zero_data: true }'),
    "'name' must be set",
  ],
  [
    'an initial state of another size',
    state('initial_state { name: "z" data_type: TYPE_FP32 dims: 3 zero_data: true }'),
    'dims do not match',
  ],
  ['an initial state of nothing', state('initial_state { name: "z" data_type: TYPE_FP32 dims: 2 }'), 'no data'],
  ['a control without values', control('control { kind: CONTROL_SEQUENCE_START }'), 'must specify either'],
  [
    'a control of two kinds of values',
    control('control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] bool_false_true: [false, true] }'),
    'more than one from',
  ],
  [
    'a control of one value',
    control('control { kind: CONTROL_SEQUENCE_READY fp32_false_true: 1 }'),
    'exactly 2 entries',
  ],
  [
    'an id in a type that holds none',
    control('control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 }'),
    'unexpected data type for control CONTROL_SEQUENCE_CORRID',
  ],
  [
    'a control for two things',
    control('control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] }, { kind: CONTROL_SEQUENCE_END } ]'),
    'multiple control kinds',
  ],
];

describe('the settled configuration', () => {
  it('has Triton’s defaults', () => {
    const config = settled(`max_batch_size: 4 ${io} dynamic_batching { }`);
    expect(config).toMatchObject({
      ok: true,
      value: {
        name: 'm',
        backend: 'onnxruntime',
        platform: 'onnxruntime_onnx',
        default_model_filename: 'model.onnx',
        version_policy: { latest: { num_versions: 1 } },
        dynamic_batching: { preferred_batch_size: [4] },
        instance_group: [{ name: 'm_0', kind: 'KIND_CPU', count: 1 }],
      },
    });
  });

  it.each([
    ['another name than its directory', `name: "n" ${io}`, 'they must be equal'],
    ['another backend', `backend: "python" ${io}`, "backend 'python'"],
    ['another platform', `platform: "tensorrt_plan" ${io}`, 'tensorrt_plan'],
    [
      'a preferred size over the maximum',
      `max_batch_size: 4 ${io} dynamic_batching { preferred_batch_size: 8 }`,
      '<= max batch size',
    ],
    ['a default level out of range', `max_batch_size: 4 ${io} dynamic_batching { priority_levels: 2 }`, '[1, 2]'],
    [
      'a policy for no level',
      `max_batch_size: 4 ${io} dynamic_batching { priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 2 value { } } }`,
      '[1, 1]',
    ],
    ['a kept order', `max_batch_size: 4 ${io} dynamic_batching { preserve_ordering: true }`, 'preserve_ordering'],
    [
      'a warm-up of random values',
      `max_batch_size: 4 ${io} model_warmup { name: "w" inputs { key: "X" value { data_type: TYPE_FP32 dims: 2 random_data: true } } }`,
      'zeroes only',
    ],
    ...wrongSequences.map(([what, text, said]) => [what, `max_batch_size: 4 ${io} ${text}`, said]),
    ['a decoupled model', `${io} model_transaction_policy { decoupled: true }`, 'decoupled'],
    ['a repository agent', `${io} model_repository_agents { agents { name: "checksum" } }`, 'model_repository_agents'],
    ['a shape tensor', 'input { name: "X" data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }', 'TensorRT'],
    ['no data type', 'input { name: "X" dims: 1 }', "must specify 'data_type'"],
    ['a dimension of 0', 'input { name: "X" data_type: TYPE_FP32 dims: 0 }', 'positive or -1'],
    [
      'a reshape of another size',
      'input { name: "X" data_type: TYPE_FP32 dims: [4] reshape { shape: [3] } }',
      'different size',
    ],
    [
      'a batch input of an unknown source',
      `max_batch_size: 4 ${io} batch_input { kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_INT32 source_input: "Z" }`,
      "'Z'",
    ],
    [
      'an ensemble with instances',
      `platform: "ensemble" ${io} ensemble_scheduling { step { model_name: "a" input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } } instance_group { count: 1 }`,
      'instance group',
    ],
    ['an ensemble without steps', `platform: "ensemble" ${io} ensemble_scheduling { }`, 'at least one step'],
    ['passive instances only', `${io} instance_group { passive: true }`, 'passive'],
    ['too many instances', `${io} instance_group { count: 99 }`, '99 instances'],
  ])('is refused with %s', (_, text, expected) => {
    const config = settled(text);
    expect(config.ok ? '' : config.refusal.reason).toContain(expected);
  });

  it('A5: defaults to one second of idle time and full batches', () => {
    const batching = (text: string) => {
      const config = settled(`max_batch_size: 4 ${io} sequence_batching { ${text} }`);
      return config.ok ? config.value.sequence_batching : undefined;
    };
    const oldest = { preferred_batch_size: [4], max_candidate_sequences: 0 };
    expect(batching('oldest { }')).toMatchObject({ max_sequence_idle_microseconds: 1_000_000, oldest });
    expect(batching('oldest { preferred_batch_size: 2 } max_sequence_idle_microseconds: 5')).toMatchObject({
      max_sequence_idle_microseconds: 5,
      oldest: { preferred_batch_size: [2] },
    });
    expect(batching('direct { }')?.oldest).toBeUndefined();
  });

  it('serves the versions its policy names', () => {
    const versions = (policy: string) => {
      const config = settled(`${io} ${policy}`);
      return config.ok ? chooseVersions(config.value, [1, 2, 10]) : [];
    };
    expect(versions('')).toEqual([10]);
    expect(versions('version_policy { latest { num_versions: 2 } }')).toEqual([10, 2]);
    expect(versions('version_policy { all { } }')).toEqual([10, 2, 1]);
    expect(versions('version_policy { specific { versions: [1, 7] } }')).toEqual([1]);
  });

  it('reports exactly the settings that a CPU cannot honour', () => {
    const report = (text: string) => {
      const config = settled(`${io} ${text}`);
      return config.ok ? listUnhonoured(config.value) : [config.refusal.reason];
    };
    expect(report('parameters { key: "mine" value { string_value: "1" } }')).toEqual([]);
    const wishes: [string, string][] = [
      ['instance_group { kind: KIND_GPU gpus: 0 profile: "p" }', 'KIND_GPU'],
      ['instance_group { rate_limiter { priority: 1 } }', 'rate_limiter'],
      ['optimization { cuda { graphs: true } }', 'cuda'],
      ['optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }', 'openvino'],
      ['response_cache { enable: true }', 'response_cache'],
      ['model_metrics { metric_control { metric_identifier { family: "f" } } }', 'model_metrics'],
      [state('use_same_buffer_for_input_output: true'), 'use_same_buffer_for_input_output'],
      [state('use_growable_memory: true'), 'use_growable_memory'],
      ['parameters { key: "execution_mode" value { string_value: "1" } }', 'execution_mode'],
    ];
    for (const [text, word] of wishes) expect(report(text).join('\n'), text).toContain(word);
  });
});
