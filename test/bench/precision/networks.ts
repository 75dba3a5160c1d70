// The reference network in every precision, made as `auricle model quantise` makes it.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { ROOT } from '../../../infra/local/root.ts';
import { readModel, writeModel } from '../../../infra/pool/model-build/onnx/graph.ts';
import { calibrate } from '../../../infra/pool/model-build/quantise/calibrate.ts';
import { findProducts } from '../../../infra/pool/model-build/quantise/find-products.ts';
import type { Sample } from '../../../infra/pool/model-build/quantise/samples.ts';
import { toDynamic, worthIt } from '../../../infra/pool/model-build/quantise/to-dynamic.ts';
import { observed, toStatic } from '../../../infra/pool/model-build/quantise/to-static.ts';
import { widen } from '../../../infra/pool/model-build/quantise/widen.ts';
import { ok } from '../../../shared/result.ts';

export const precisions = ['fp32', 'fp16', 'int8_dynamic', 'int8_static', 'int8_shipped'] as const;
export type Precision = (typeof precisions)[number];

const repository = path.join(ROOT, 'infra/pool/models/repository');
const shipped = (model: string) => readFile(path.join(repository, model, '1/model.onnx'));

async function* asSamples(tensors: AsyncIterable<Sample>) {
  for await (const sample of tensors) yield ok(sample);
}

export async function makeNetworks(samples: AsyncIterable<Sample>): Promise<Record<Precision, Uint8Array>> {
  const fp16 = await shipped('asr_inference_fp16');
  const full = widen(readModel(fp16));
  const products = findProducts(full);
  const ranges = await calibrate(full, observed(products), asSamples(samples));
  if (!ranges.ok) throw new Error(ranges.refusal.text);
  return {
    fp32: writeModel(full),
    fp16,
    int8_dynamic: writeModel(toDynamic(full, worthIt(products))),
    int8_static: writeModel(toStatic(full, products, ranges.value)),
    int8_shipped: await shipped('asr_inference'),
  };
}
