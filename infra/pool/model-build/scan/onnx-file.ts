import path from 'node:path';
import { MiB } from '../../../../shared/bytes.ts';
import { ok } from '../../../../shared/result.ts';
import { plainPath } from '../../models/config/names.ts';
import type { Blob } from '../blob.ts';
import { type OnnxFacts, readOnnx } from '../onnx/read-onnx.ts';
import { WireError } from '../onnx/wire.ts';
import { type BuildResult, problem } from '../problem.ts';
import { fileBelow } from './plain-file.ts';

/** ONNX file without its external data: protobuf allows no more. */
const MODEL_GRAPH_BYTES = 2048 * MiB - 1;

/** Operators that the ONNX standard defines: none of them opens files or runs code from elsewhere. */
const standard = new Set(['', 'ai.onnx', 'ai.onnx.ml']);

/** ONNX Runtime's own operators that only compute. Others of its domain load engines or call Python. */
const runtime = new Set(
  `Attention BeamSearch BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu ConvTransposeWithDynamicPads
  CropAndResize DecoderAttention DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention DequantizeBFP DequantizeLinear
  DynamicQuantizeLSTM DynamicQuantizeMatMul EmbedLayerNormalization FastGelu FusedConv FusedGemm FusedMatMul GatedRelativePositionBias
  GatherBlockQuantized GatherND Gelu GemmFastGelu GreedySearch GridSample GroupNorm GroupQueryAttention Inverse Irfft LongformerAttention
  MatMulBnb4 MatMulFpQ4 MatMulInteger16 MatMulIntegerToFloat MatMulNBits MaxpoolWithMask MultiHeadAttention MurmurHash3 NGramRepeatBlock
  NhwcConv NhwcMaxPool PackedAttention PackedMultiHeadAttention Pad QAttention QEmbedLayerNormalization QGemm QLinearAdd
  QLinearAveragePool QLinearConcat QLinearConv QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearReduceMean
  QLinearSigmoid QLinearSoftmax QLinearWhere QMoE QOrderedAttention QOrderedGelu QOrderedLayerNormalization
  QOrderedLongformerAttention QOrderedMatMul QuantizeBFP QuantizeLinear QuickGelu Range ReduceSumInteger RelativePositionBias
  RemovePadding RestorePadding Rfft RotaryEmbedding SampleOp Sampling SkipGroupNorm SkipLayerNormalization
  SkipSimplifiedLayerNormalization SparseToDenseMatMul Tokenizer TorchEmbedding TransposeMatMul Trilu UnfoldTensor Unique
  WhisperBeamSearch WordConvEmbedding SimplifiedLayerNormalization`.split(/\s+/),
);

/**
 * Domains of functions that a file defines, as exporters of PyTorch write them. A function of any other
 * domain proves nothing about its operator: an engine that has one of that name runs its own.
 */
const ownDomains = /^(this|local|pkg(\.[\w.]+)?)$/;

function checkOperators({ operators, functions }: OnnxFacts, name: string): BuildResult<undefined> {
  for (const operator of operators) {
    const at = operator.lastIndexOf(':');
    const [domain, kind] = [operator.slice(0, at), operator.slice(at + 1)];
    const known =
      standard.has(domain) ||
      (domain === 'com.microsoft' && runtime.has(kind)) ||
      (ownDomains.test(domain) && functions.has(operator));
    if (!known) return problem('unsafe', `${name} uses the operator ${kind} of "${domain}", which is on no list`);
  }
  return ok(undefined);
}

/** Scans an ONNX file: every operator must be allowed, every weight inside it or in a file beside it. */
export async function scanOnnx(blob: Blob): Promise<BuildResult<OnnxFacts>> {
  if (blob.size > MODEL_GRAPH_BYTES) return problem('bound', `${blob.name} has ${blob.size} bytes`);
  let facts: OnnxFacts;
  try {
    facts = readOnnx(await blob.read(0, blob.size));
  } catch (error) {
    if (error instanceof WireError) return problem('unreadable', `${blob.name} is no ONNX file: ${error.message}`);
    throw error;
  }
  const operators = checkOperators(facts, blob.name);
  if (!operators.ok) return operators;
  for (const { location } of facts.external) {
    // A disguised plain path is refused, too: `a/./b` has no honest reason.
    if (plainPath(location) !== location) {
      return problem('unsafe', `${blob.name} keeps weights at ${JSON.stringify(location)}, which leads elsewhere`);
    }
  }
  return ok(facts);
}

/** Returns the external weight files of an ONNX file: plain files below its folder, of sufficient length. */
export async function findExternal(file: string, facts: OnnxFacts): Promise<BuildResult<string[]>> {
  const locations = [...new Set(facts.external.map(({ location }) => location))].sort();
  for (const location of locations) {
    const found = await fileBelow(path.dirname(file), location, `${file}, for its weights,`);
    if (!found.ok) return found;
    const ends = facts.external
      .filter((one) => one.location === location)
      .map(({ offset, length = 0 }) => offset + length);
    if (ends.some((end) => !(end >= 0 && end <= found.value.size))) {
      return problem('damaged', `${file} keeps weights behind the end of ${location}`);
    }
  }
  return ok(locations);
}
