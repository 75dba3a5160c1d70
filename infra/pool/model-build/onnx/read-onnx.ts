import { bytesOf, type Field, fieldsOf, numberOf, numbersOf, partsOf, textOf, WireError } from './wire.ts';

/** Nesting of graphs in an ONNX file; real ones have two or three levels. */
const MODEL_GRAPH_DEPTH = 32;

/** An input or output of a network. A dimension is a number, a name, or unknown (-1). */
export interface OnnxValue {
  readonly name: string;
  /** TensorProto.DataType. */
  readonly elem: number;
  readonly dims: readonly (number | string)[];
}

export interface ExternalData {
  readonly location: string;
  readonly offset: number;
  readonly length: number | undefined;
}

/** Facts of an ONNX file, without its weights. */
export interface OnnxFacts {
  readonly irVersion: number;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly external: readonly ExternalData[];
  /** `domain:operator`, including nested graphs. */
  readonly operators: ReadonlySet<string>;
  /** Operators that the file itself defines, as `domain:operator`. */
  readonly functions: ReadonlySet<string>;
  /** Count of weight elements by TensorProto.DataType. */
  readonly weights: ReadonlyMap<number, number>;
}

interface Found {
  readonly external: ExternalData[];
  readonly operators: Set<string>;
  readonly functions: Set<string>;
  readonly weights: Map<number, number>;
}

/** Reads a ModelProto. Throws `WireError` for other bytes. */
export function readOnnx(bytes: Uint8Array): OnnxFacts {
  const found: Found = { external: [], operators: new Set(), functions: new Set(), weights: new Map() };
  let [irVersion, inputs, outputs]: [number, OnnxValue[], OnnxValue[]] = [0, [], []];
  let graphs = 0;
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) irVersion = numberOf(field);
    if (field.number === 7) {
      graphs++;
      ({ inputs, outputs } = readGraph(bytesOf(field), found, 0));
    }
    // Training graphs, and functions that the file defines.
    if (field.number === 20)
      for (const part of partsOf(field)) if (part.number <= 2) readGraph(bytesOf(part), found, 1);
    if (field.number === 25) readFunction(bytesOf(field), found);
  }
  if (graphs !== 1 || irVersion < 1) throw new WireError('no ONNX model');
  return { irVersion, inputs, outputs, ...found };
}

function readFunction(bytes: Uint8Array, found: Found): void {
  let [name, domain] = ['', ''];
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) name = textOf(field);
    if (field.number === 10) domain = textOf(field);
    if (field.number === 7) readNode(bytesOf(field), found, 1);
    if (field.number === 11) readAttribute(bytesOf(field), found, 1);
  }
  found.functions.add(`${domain}:${name}`);
}

function readGraph(bytes: Uint8Array, found: Found, depth: number): { inputs: OnnxValue[]; outputs: OnnxValue[] } {
  if (depth > MODEL_GRAPH_DEPTH) throw new WireError('graphs are nested too deeply');
  const [inputs, outputs, constants]: [OnnxValue[], OnnxValue[], Set<string>] = [[], [], new Set()];
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) readNode(bytesOf(field), found, depth);
    if (field.number === 5) constants.add(readTensor(bytesOf(field), found));
    if (field.number === 15) readSparse(bytesOf(field), found);
    if (field.number === 11) inputs.push(readValue(bytesOf(field)));
    if (field.number === 12) outputs.push(readValue(bytesOf(field)));
  }
  // Older files list their weights as inputs, too.
  return { inputs: inputs.filter(({ name }) => !constants.has(name)), outputs };
}

function readNode(bytes: Uint8Array, found: Found, depth: number): void {
  let [operator, domain] = ['', ''];
  for (const field of fieldsOf(bytes)) {
    if (field.number === 4) operator = textOf(field);
    if (field.number === 7) domain = textOf(field);
    if (field.number === 5) readAttribute(bytesOf(field), found, depth);
  }
  found.operators.add(`${domain}:${operator}`);
}

function readAttribute(bytes: Uint8Array, found: Found, depth: number): void {
  for (const field of fieldsOf(bytes)) {
    if (field.number === 5 || field.number === 10) readTensor(bytesOf(field), found);
    if (field.number === 6 || field.number === 11) readGraph(bytesOf(field), found, depth + 1);
    if (field.number === 22 || field.number === 23) readSparse(bytesOf(field), found);
  }
}

function readSparse(bytes: Uint8Array, found: Found): void {
  for (const field of fieldsOf(bytes)) if (field.number === 1 || field.number === 2) readTensor(bytesOf(field), found);
}

/** Reads a tensor and returns its name. */
function readTensor(bytes: Uint8Array, found: Found): string {
  let [name, elem, count]: [string, number, number] = ['', 0, 1];
  const external = new Map<string, string>();
  let elsewhere = false;
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) for (const dim of numbersOf(field)) count *= dim;
    if (field.number === 2) elem = numberOf(field);
    if (field.number === 8) name = textOf(field);
    if (field.number === 13) {
      const [key, value] = readPair(field);
      // Readers differ in whether the first or the last of two counts.
      if (external.has(key)) throw new WireError(`${key} of external data is given twice`);
      external.set(key, value);
    }
    if (field.number === 14) elsewhere = numberOf(field) === 1;
  }
  found.weights.set(elem, (found.weights.get(elem) ?? 0) + count);
  if (elsewhere || external.size > 0) {
    const [offset, length] = ['offset', 'length'].map((key) => external.get(key));
    found.external.push({
      location: external.get('location') ?? '',
      offset: Number(offset ?? 0),
      length: length === undefined ? undefined : Number(length),
    });
  }
  return name;
}

function readPair(pair: Field): [key: string, value: string] {
  let [key, value] = ['', ''];
  for (const field of partsOf(pair)) {
    if (field.number === 1) key = textOf(field);
    if (field.number === 2) value = textOf(field);
  }
  return [key, value];
}

/** Reads ValueInfoProto → TypeProto.Tensor → TensorShapeProto. Other types get element type 0. */
function readValue(bytes: Uint8Array): OnnxValue {
  let [name, elem]: [string, number] = ['', 0];
  const dims: (number | string)[] = [];
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) name = textOf(field);
    if (field.number !== 2) continue;
    for (const type of partsOf(field)) {
      if (type.number !== 1) continue;
      for (const part of partsOf(type)) {
        if (part.number === 1) elem = numberOf(part);
        if (part.number === 2) for (const dim of partsOf(part)) if (dim.number === 1) dims.push(readDim(bytesOf(dim)));
      }
    }
  }
  return { name, elem, dims };
}

function readDim(bytes: Uint8Array): number | string {
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) return numberOf(field) > 0 ? numberOf(field) : -1;
    if (field.number === 2) return textOf(field);
  }
  return -1;
}
