import { type GraphBuilder, types } from './graph-builder.ts';
import { createLayers, type Whisper, weightOf } from './layers.ts';
import { FILTERS, fourierBasis, HOP, melFilters, WINDOW } from './mel.ts';

/** Longest sound of one decoding, samples: 30 s. */
export const SOUND_SAMPLES_MAX = 480_000;
/**
 * Silence behind the sound, samples: 5 s. Whisper was trained on 30 s; with 1 s of silence it repeats one
 * sentence in five, and all 30 s cost four times as much.
 */
const SILENCE_SAMPLES = 80_000;
/** Samples of one frame of the encoder: two of the spectrum. */
export const FRAME_SAMPLES = 2 * HOP;

/** Adds log-mel features and the encoder; returns its frames and the number of samples of the sound. */
export function addEncoder(graph: GraphBuilder, whisper: Whisper, audio: string): { frames: string; samples: string } {
  const { op, ints } = graph;
  const samples = op('Gather', [op('Shape', [audio]), ints([1])], { axis: 0 });
  const padded = op('Add', [samples, ints([SILENCE_SAMPLES + FRAME_SAMPLES - 1])]);
  const whole = op('Mul', [op('Div', [padded, ints([FRAME_SAMPLES])]), ints([FRAME_SAMPLES])]);
  const total = op('Min', [whole, ints([SOUND_SAMPLES_MAX])]);
  const behind = op('Concat', [ints([0, 0, 0]), op('Sub', [total, samples])], { axis: 0 });
  const spectrum = addSpectrum(graph, op('Pad', [audio, behind]), op('Div', [total, ints([HOP])]));
  return { frames: addLayers(graph, whisper, spectrum, op('Div', [total, ints([FRAME_SAMPLES])])), samples };
}

/** Log-mel spectrum of Whisper: 80 bands each 10 ms, at most 80 dB below the loudest. */
function addSpectrum({ op, ops, ints, float, tensor }: GraphBuilder, sound: string, count: string): string {
  const ends = ints([0, 0, WINDOW / 2, 0, 0, WINDOW / 2]);
  const x = op('Pad', [op('Unsqueeze', [sound, ints([1])]), ends], { mode: 'reflect' });
  const basis = tensor('fourier', [WINDOW + 2, 1, WINDOW], fourierBasis);
  const all = op('Conv', [x, basis], { strides: [HOP] });
  const waves = op('Slice', [all, ints([0]), count, ints([2])]);
  const [real = '', imaginary = ''] = ops('Split', [waves], 2, { axis: 1, num_outputs: 2 });
  const power = op('Add', [op('Mul', [real, real]), op('Mul', [imaginary, imaginary])]);
  const bands = op('MatMul', [tensor('mel', [FILTERS, WINDOW / 2 + 1], melFilters), power]);
  const log = op('Mul', [op('Log', [op('Max', [bands, float(1e-10)])]), float(1 / Math.LN10)]);
  const floor = op('Sub', [op('ReduceMax', [log, ints([1, 2])], { keepdims: 1 }), float(8)]);
  return op('Mul', [op('Add', [op('Max', [log, floor]), float(4)]), float(0.25)]);
}

function addLayers(graph: GraphBuilder, whisper: Whisper, spectrum: string, count: string): string {
  const { op, ops, ints, matrix } = graph;
  const { linear, normalise, gelu, split, join, shares, feedForward } = createLayers(graph, whisper);
  const convolve = (x: string, name: string, stride: number) => {
    const [weight, bias] = ['weight', 'bias'].map((part) =>
      matrix(`${name}/${part}`, weightOf(whisper, `${name}/${part}`)),
    ) as [string, string];
    return gelu(op('Conv', [x, weight, bias], { pads: [1, 1], strides: [stride] }));
  };
  const y = convolve(convolve(spectrum, 'encoder/conv1', 1), 'encoder/conv2', 2);
  const positions = matrix('positions', weightOf(whisper, 'encoder/position_encodings/encodings'));
  const here = op('Slice', [positions, ints([0]), count, ints([0])]);
  let x = op('Add', [op('Transpose', [y], { perm: [0, 2, 1] }), here]);
  for (let layer = 0; layer < whisper.encoderLayers; layer++) {
    const name = `encoder/layer_${layer}`;
    const own = linear(normalise(x, `${name}/self_attention/layer_norm`), `${name}/self_attention/linear_0`);
    const [q = '', k = '', v = ''] = ops('Split', [own], 3, { axis: -1, num_outputs: 3 }).map(split);
    const heard = join(op('MatMul', [shares(q, k), v]));
    x = op('Add', [x, linear(heard, `${name}/self_attention/linear_1`)]);
    x = feedForward(x, `${name}/ffn`);
  }
  return normalise(x, 'encoder/layer_norm');
}

export const AUDIO = { name: 'AUDIO', elem: types.FLOAT, dims: [1, 'samples'] } as const;
