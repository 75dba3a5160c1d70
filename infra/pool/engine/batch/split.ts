import { datatypes } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { elementCount, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../shared/result.ts';
import type { Message, ModelConfig } from '../../models/config/schema.ts';
import { clientShape } from './reshape.ts';

/** One request of an executed batch: its inputs, and its number of items in the batch. */
export interface Share {
  readonly inputs: readonly Tensor[];
  readonly size: number;
}

/** Splits the outputs of one execution into one list per request. Tensors are views: nothing is copied. */
export function split(config: ModelConfig, outputs: readonly Tensor[], shares: readonly Share[]): Read<Tensor[][]> {
  const results: Tensor[][] = shares.map(() => []);
  for (const tensor of outputs) {
    const output = config.output.find(({ name }) => name === tensor.name);
    if (!output) return fault(`the model gave an output '${tensor.name}' that is not in its configuration`);
    const cut = cutOutput(config, output, tensor, shares);
    if (!cut.ok) return cut;
    for (const [index, piece] of cut.value.entries()) results[index]!.push(piece);
  }
  return ok(results);
}

function cutOutput(config: ModelConfig, output: Message<'Output'>, tensor: Tensor, shares: readonly Share[]) {
  const scatter = config.batch_output.find(({ target_name }) => target_name.includes(tensor.name));
  if (scatter) return cutLikeInput(tensor, scatter.source_input[0]!, shares);
  if (config.max_batch_size === 0) {
    const shape = clientShape(output, tensor.shape);
    return shape ? ok([{ ...tensor, shape }]) : wrongShape(tensor, output.dims);
  }
  const [items, ...rest] = tensor.shape;
  const shape = clientShape(output, rest);
  if (!shape) return wrongShape(tensor, [-1, ...output.dims]);
  const wanted = shares.reduce((sum, { size }) => sum + size, 0);
  if (items !== wanted) return fault(`output '${tensor.name}' has ${items} items for a batch of ${wanted}`);
  const rowElements = elementCount(rest) ?? 0;
  return cutRows(
    tensor,
    shares.map(({ size }) => ({ elements: size * rowElements, shape: [size, ...shape] })),
  );
}

const wrongShape = (tensor: Tensor, dims: readonly number[]) =>
  fault(`output '${tensor.name}' has the shape [${tensor.shape}], its configuration says [${dims}]`);

/** Splits the flat output by the shapes of an input (BATCH_SCATTER_WITH_INPUT_SHAPE). */
function cutLikeInput(tensor: Tensor, source: string, shares: readonly Share[]): Read<Tensor[]> {
  const pieces = shares.map(({ inputs }) => {
    const shape = inputs.find(({ name }) => name === source)?.shape ?? [];
    return { elements: elementCount(shape) ?? 0, shape };
  });
  return cutRows(tensor, pieces);
}

function cutRows(tensor: Tensor, pieces: readonly { elements: number; shape: readonly number[] }[]): Read<Tensor[]> {
  const wanted = pieces.reduce((sum, { elements }) => sum + elements, 0);
  const found = elementCount(tensor.shape) ?? 0;
  if (wanted !== found) return fault(`output '${tensor.name}' has ${found} elements, the batch needs ${wanted}`);
  const boundary = byteOffsets(tensor);
  let at = 0;
  return ok(
    pieces.map(({ elements, shape }) => {
      const bytes = tensor.bytes.subarray(boundary(at), boundary(at + elements));
      at += elements;
      return { ...tensor, shape, bytes };
    }),
  );
}

/**
 * Returns a function from element number to byte offset. BYTES elements differ in length, so they are walked
 * once.
 */
function byteOffsets({ datatype, bytes, shape }: Tensor): (element: number) => number {
  const width = datatypes[datatype].bytes;
  if (width > 0) return (element) => element * width;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const offsets = [0];
  for (let index = 0; index < (elementCount(shape) ?? 0); index++) {
    const start = offsets[index]!;
    offsets.push(start + 4 + view.getUint32(start, true));
  }
  return (element) => offsets[element] ?? bytes.byteLength;
}
