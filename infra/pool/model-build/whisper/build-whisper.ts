import { addDecoder, addTimes, type Control } from './decoder.ts';
import { AUDIO, addEncoder } from './encoder.ts';
import { createGraphBuilder, modelOf, types } from './graph-builder.ts';
import type { Whisper } from './layers.ts';
import { type Matrix, readCtranslate } from './read-ctranslate.ts';

/** Files of a Whisper as CTranslate2 stores it. */
export interface WhisperFiles {
  readonly weights: Uint8Array;
  /** `config.json`. */
  readonly config: {
    readonly suppress_ids: readonly number[];
    readonly suppress_ids_begin: readonly number[];
    readonly alignment_heads: readonly (readonly [number, number])[];
  };
  /** Lines of `vocabulary.txt`. */
  readonly vocabulary: readonly string[];
}

/** Values of one head; Whisper has this many in every size. */
const HEAD = 64;

function shapeOf(weights: ReadonlyMap<string, Matrix>): Whisper {
  const width = weights.get('decoder/embeddings/weight')?.dims[1] ?? 0;
  const layers = (side: string) =>
    new Set([...weights.keys()].flatMap((name) => name.match(`^${side}/layer_\\d+/`) ?? [])).size;
  return {
    ...{ weights, width, heads: width / HEAD },
    encoderLayers: layers('encoder'),
    decoderLayers: layers('decoder'),
  };
}

/**
 * Rewrites an English Whisper to one ONNX graph: `AUDIO` [1, samples] to `TOKENS`, `TOKEN_TIMES` and `TOKEN_LOG_PROBS`,
 * each [1, tokens]. Weights have 8 bits, greedy decoding is a loop inside.
 */
export function buildWhisper({ weights, config, vocabulary }: WhisperFiles): Uint8Array {
  const whisper = shapeOf(readCtranslate(weights));
  const control: Control = {
    start: vocabulary.indexOf('<|startoftranscript|>'),
    noTimes: vocabulary.indexOf('<|notimestamps|>'),
    end: vocabulary.indexOf('<|endoftext|>'),
    suppressed: config.suppress_ids,
    suppressedFirst: config.suppress_ids_begin,
    alignment: config.alignment_heads,
  };
  const graph = createGraphBuilder('');
  const encoded = addEncoder(graph, whisper, AUDIO.name);
  const { tokens, scores, attention } = addDecoder(graph, whisper, control, encoded);
  const outputs = [
    ['TOKENS', tokens, types.INT64],
    ['TOKEN_TIMES', graph.op('Unsqueeze', [addTimes(graph, attention, encoded.samples), graph.ints([1])]), types.FLOAT],
    ['TOKEN_LOG_PROBS', scores, types.FLOAT],
  ] as const;
  for (const [name, from] of outputs) graph.named('Transpose', [from], [name], { perm: [1, 0] });
  const values = outputs.map(([name, , elem]) => ({ name, elem, dims: [1, 'tokens'] }));
  return modelOf(graph.finish('whisper', [AUDIO], values));
}
