import { FRAME_SAMPLES } from './encoder.ts';
import { createGraphBuilder, type GraphBuilder, type GraphValue, types } from './graph-builder.ts';
import { createLayers, type Whisper, weightOf } from './layers.ts';

/** Control tokens, by number. */
export interface Control {
  readonly start: number;
  readonly noTimes: number;
  readonly end: number;
  /** Tokens that are never, and never first, part of a text. */
  readonly suppressed: readonly number[];
  readonly suppressedFirst: readonly number[];
  /** Attention heads that follow the sound: layer and head. */
  readonly alignment: readonly (readonly [number, number])[];
}

/** Tokens of one decoding: as many as Whisper was trained with, and twelve for a second of sound. */
const TOKENS_MAX = 224;
const TOKENS_FIRST = 16;
const SAMPLES_OF_TOKEN = Math.round(16_000 / 12);
/** Score that no token outweighs. */
const NEVER = -1e9;

const { FLOAT, INT64, BOOL } = types;

/** Frames of the encoder, and the number of samples of the sound. */
export interface Encoded {
  readonly frames: string;
  readonly samples: string;
}

/** Adds greedy decoding as a loop; returns tokens, their log probabilities and the attention of each, turn by turn. */
export function addDecoder(graph: GraphBuilder, whisper: Whisper, control: Control, { frames, samples }: Encoded) {
  const { op, ops, ints } = graph;
  const { linear, split } = createLayers(graph, whisper);
  const crosses = Array.from({ length: whisper.decoderLayers }, (_, layer) => {
    const both = linear(frames, `decoder/layer_${layer}/attention/linear_1`);
    return ops('Split', [both], 2, { axis: -1, num_outputs: 2 }).map(split) as [string, string];
  });
  const body = makeTurn(whisper, control, crosses);
  const most = op('Add', [op('Div', [samples, ints([SAMPLES_OF_TOKEN])]), ints([TOKENS_FIRST])]);
  const turns = op('Squeeze', [op('Min', [most, ints([TOKENS_MAX])])]);
  const yes = op('Cast', [ints(1)], { to: BOOL });
  const none = op(
    'Cast',
    [graph.tensor('nothing', [1, whisper.heads, 0, whisper.width / whisper.heads], () => new Float32Array())],
    { to: FLOAT },
  );
  const memory = crosses.flatMap(() => [none, none]);
  const outputs = ops('Loop', [turns, yes, ints([control.start]), ...memory], 1 + memory.length + 3, { body });
  const [tokens = '', scores = '', attention = ''] = outputs.slice(-3);
  return { tokens, scores, attention };
}

/** One turn: the token before, and keys and values of all before it, to the next token. */
function makeTurn(whisper: Whisper, control: Control, crosses: readonly (readonly [string, string])[]): Uint8Array {
  const graph = createGraphBuilder('turn.');
  const { op, ops, ints, matrix } = graph;
  const { linear, normalise, split, join, shares, feedForward } = createLayers(graph, whisper);
  const table = graph.whole('tokens', weightOf(whisper, 'decoder/embeddings/weight'));
  const column = op('Transpose', [op('Gather', [table.weight, 'token'], { axis: 1 })], { perm: [1, 0] });
  const embedded = op('Mul', [op('Cast', [column], { to: FLOAT }), op('Gather', [table.scale, 'token'], { axis: 0 })]);
  const positions = matrix('places', weightOf(whisper, 'decoder/position_encodings/encodings'));
  let x = op('Unsqueeze', [op('Add', [embedded, op('Gather', [positions, 'turn'], { axis: 0 })]), ints([1])]);
  const memory: string[] = [];
  const followed: string[] = [];
  for (const [layer, [keys, values]] of crosses.entries()) {
    const name = `decoder/layer_${layer}`;
    const own = linear(normalise(x, `${name}/self_attention/layer_norm`), `${name}/self_attention/linear_0`);
    const [q = '', k = '', v = ''] = ops('Split', [own], 3, { axis: -1, num_outputs: 3 }).map(split);
    const k2 = op('Concat', [`keys${layer}`, k], { axis: 2 });
    const v2 = op('Concat', [`values${layer}`, v], { axis: 2 });
    memory.push(k2, v2);
    x = op('Add', [x, linear(join(op('MatMul', [shares(q, k2), v2])), `${name}/self_attention/linear_1`)]);
    const query = split(linear(normalise(x, `${name}/attention/layer_norm`), `${name}/attention/linear_0`));
    const heard = shares(query, keys);
    const heads = control.alignment.filter(([at]) => at === layer).map(([, head]) => head);
    if (heads.length > 0)
      followed.push(
        op('ReduceSum', [op('Gather', [heard, ints(heads)], { axis: 1 }), ints([0, 1, 2])], { keepdims: 0 }),
      );
    x = op('Add', [x, linear(join(op('MatMul', [heard, values])), `${name}/attention/linear_2`)]);
    x = feedForward(x, `${name}/ffn`);
  }
  const last = op('Squeeze', [normalise(x, 'decoder/layer_norm'), ints([1])]);
  const next = addChoice(graph, control, graph.product(last, table.weight, table.scale), whisper);
  const attention = op('Sum', followed);
  return graph.finish('turn', turnInputs(whisper), [
    { name: next.more, elem: BOOL },
    { name: next.token, elem: INT64 },
    ...memory.map((name) => ({ name, elem: FLOAT })),
    { name: op('Identity', [next.token]), elem: INT64 },
    { name: next.score, elem: FLOAT },
    { name: attention, elem: FLOAT },
  ]);
}

const turnInputs = ({ decoderLayers }: Whisper): GraphValue[] => [
  { name: 'turn', elem: INT64, dims: [] },
  { name: 'before', elem: BOOL, dims: [] },
  { name: 'token', elem: INT64, dims: [1] },
  ...Array.from({ length: decoderLayers }, (_, layer) =>
    ['keys', 'values'].map((kind) => ({ name: `${kind}${layer}`, elem: FLOAT })),
  ).flat(),
];

/** The likeliest permitted token, the log of its probability, and whether the text goes on. The first turn is forced. */
function addChoice({ op, ints, tensor }: GraphBuilder, control: Control, logits: string, whisper: Whisper) {
  const [size = 0] = weightOf(whisper, 'decoder/embeddings/weight').dims;
  const forbidden = tensor('forbidden', [2, size], () => {
    const both = new Float32Array(2 * size);
    // Behind the end of text come control tokens only.
    const never = control.suppressed.filter((token) => token >= 0);
    for (const row of [0, size]) {
      both.fill(NEVER, row + control.end + 1, row + size);
      for (const token of never) both[row + token] = NEVER;
      both[row + control.end] = 0;
    }
    for (const token of control.suppressedFirst) both[token] = NEVER;
    return both;
  });
  const later = op('Cast', [op('Greater', ['turn', ints(1)])], { to: INT64 });
  const scores = op('Add', [logits, op('Gather', [forbidden, later], { axis: 0 })]);
  const best = op('ArgMax', [scores], { axis: -1, keepdims: 0 });
  const token = op('Where', [op('Equal', ['turn', ints(0)]), ints([control.noTimes]), best]);
  const score = op('Sub', [
    op('ReduceMax', [scores, ints([1])], { keepdims: 0 }),
    op('ReduceLogSumExp', [scores, ints([1])], { keepdims: 0 }),
  ]);
  const more = op('Squeeze', [op('Not', [op('Equal', [token, ints([control.end])])])]);
  return { token, score, more };
}

/** Seconds at which each token is spoken: where its attention stands out most. */
export function addTimes({ op, ints, float }: GraphBuilder, attention: string, samples: string): string {
  const mean = op('ReduceMean', [attention, ints([0])], { keepdims: 1 });
  const above = op('Sub', [attention, mean]);
  const spread = op('Sqrt', [op('ReduceMean', [op('Mul', [above, above]), ints([0])], { keepdims: 1 })]);
  const scaled = op('Div', [above, op('Add', [spread, float(1e-6)])]);
  const smooth = op('AveragePool', [op('Unsqueeze', [scaled, ints([1])])], { kernel_shape: [7], pads: [3, 3] });
  const frames = op('Div', [op('Add', [samples, ints([FRAME_SAMPLES - 1])]), ints([FRAME_SAMPLES])]);
  const own = op('Slice', [op('Squeeze', [smooth, ints([1])]), ints([0]), frames, ints([1])]);
  const at = op('Cast', [op('ArgMax', [own], { axis: 1, keepdims: 0 })], { to: FLOAT });
  return op('Mul', [at, float(FRAME_SAMPLES / 16_000)]);
}
