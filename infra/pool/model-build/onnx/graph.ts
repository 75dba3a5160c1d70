import { readHead, type TensorHead } from './tensor.ts';
import { bytesOf, type Field, fieldsOf, floatOf, numberOf, partsOf, textOf, WireError } from './wire.ts';
import { bytesField, floatField, integerField, joinBytes, messageField, textField } from './write-wire.ts';

/** A mutable node with its original bytes. */
export interface Node {
  readonly name: string;
  readonly operator: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly bytes: Uint8Array;
}

/** A weight with its original bytes. */
export interface Weight extends TensorHead {
  readonly bytes: Uint8Array;
}

/** A model with replaceable nodes, weights and outputs. Everything else keeps its original bytes. */
export interface OnnxModel {
  readonly nodes: readonly Node[];
  readonly weights: readonly Weight[];
  /** ValueInfoProto. Older files list their weights as inputs, too. */
  readonly inputs: readonly Uint8Array[];
  readonly outputs: readonly Uint8Array[];
  /** Version of the standard operators. */
  readonly opset: number;
  readonly rest: { readonly model: readonly Uint8Array[]; readonly graph: readonly Pick<Field, 'number' | 'raw'>[] };
  /** Index of the graph among the fields of the model. */
  readonly graphAt: number;
}

/** Reads a ModelProto for changes. Throws `WireError` for other bytes. */
export function readModel(bytes: Uint8Array): OnnxModel {
  const [nodes, weights]: [Node[], Weight[]] = [[], []];
  const [inputs, outputs]: [Uint8Array[], Uint8Array[]] = [[], []];
  const rest: { model: Uint8Array[]; graph: Pick<Field, 'number' | 'raw'>[] } = { model: [], graph: [] };
  let [opset, graphAt] = [0, -1];
  for (const field of fieldsOf(bytes)) {
    if (field.number === 7) {
      if (graphAt >= 0) throw new WireError('a model with two graphs');
      graphAt = rest.model.length;
      for (const part of partsOf(field)) {
        if (part.number === 1) nodes.push(readNode(bytesOf(part)));
        else if (part.number === 5) weights.push(makeWeight(bytesOf(part)));
        else if (part.number === 11) inputs.push(bytesOf(part));
        else if (part.number === 12) outputs.push(bytesOf(part));
        else rest.graph.push(part);
      }
      continue;
    }
    if (field.number === 8) opset = Math.max(opset, standardVersion(field));
    rest.model.push(field.raw);
  }
  if (graphAt < 0) throw new WireError('no ONNX model');
  return { nodes, weights, inputs, outputs, opset, rest, graphAt };
}

function standardVersion(field: Field): number {
  let [domain, version] = ['', 0];
  for (const part of partsOf(field)) {
    if (part.number === 1) domain = textOf(part);
    if (part.number === 2) version = numberOf(part);
  }
  return domain === '' || domain === 'ai.onnx' ? version : 0;
}

/** Writes the model: equal models give equal bytes, and an unchanged one its original bytes. */
export function writeModel({ nodes, weights, inputs, outputs, rest, graphAt }: OnnxModel): Uint8Array {
  const listed: Readonly<Record<number, readonly Uint8Array[]>> = {
    1: nodes.map(({ bytes }) => bytes),
    5: weights.map(({ bytes }) => bytes),
    11: inputs,
    12: outputs,
  };
  // Fields are ordered by number, as serialisers order them; fields of one number keep their order.
  const fields = [
    ...rest.graph,
    ...Object.entries(listed).map(([number, all]) => ({
      number: Number(number),
      raw: joinBytes(all.map((bytes) => bytesField(Number(number), bytes))),
    })),
  ].sort((one, other) => one.number - other.number);
  const graph = messageField(
    7,
    fields.map(({ raw }) => raw),
  );
  return joinBytes([...rest.model.slice(0, graphAt), graph, ...rest.model.slice(graphAt)]);
}

export function readNode(bytes: Uint8Array): Node {
  let [name, operator, domain] = ['', '', ''];
  const [inputs, outputs]: [string[], string[]] = [[], []];
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) inputs.push(textOf(field));
    if (field.number === 2) outputs.push(textOf(field));
    if (field.number === 3) name = textOf(field);
    if (field.number === 4) operator = textOf(field);
    if (field.number === 7) domain = textOf(field);
  }
  return { name, operator, domain, inputs, outputs, bytes };
}

/** AttributeProto: an integer, integers, a text, a float, or the bytes of a nested graph. */
export type Attribute = number | readonly number[] | string | { readonly float: number } | Uint8Array;
export type Attributes = Readonly<Record<string, Attribute>>;

const attribute = (name: string, value: Attribute): Uint8Array =>
  messageField(5, [textField(1, name), ...attributeFields(value)]);

function attributeFields(value: Attribute): Uint8Array[] {
  if (typeof value === 'number') return [integerField(3, value), integerField(20, 2)];
  if (typeof value === 'string') return [textField(4, value), integerField(20, 3)];
  if (value instanceof Uint8Array) return [bytesField(6, value), integerField(20, 5)];
  if ('float' in value) return [floatField(2, value.float), integerField(20, 1)];
  return [...value.map((one) => integerField(8, one)), integerField(20, 7)];
}

/**
 * Makes a node of a standard operator. It has no name: names are optional and must be
 * unique.
 */
export function makeNode(
  operator: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: Attributes = {},
): Node {
  const fields = [
    ...inputs.map((one) => textField(1, one)),
    ...outputs.map((one) => textField(2, one)),
    textField(4, operator),
    ...Object.entries(attributes).map(([name, value]) => attribute(name, value)),
  ];
  return readNode(joinBytes(fields));
}

/** Returns a node with other inputs, outputs or operator, otherwise unchanged. */
export function changeNode(node: Node, change: Partial<Pick<Node, 'inputs' | 'outputs' | 'operator'>>): Node {
  const { inputs, outputs, operator } = { ...node, ...change };
  const kept = [...fieldsOf(node.bytes)].filter(({ number }) => number > 2 && number !== 4).map(({ raw }) => raw);
  const named = [...inputs.map((one) => textField(1, one)), ...outputs.map((one) => textField(2, one))];
  return readNode(joinBytes([...named, textField(4, operator), ...kept]));
}

/** Returns a single-number attribute; `undefined` when the node has none of that name. */
export function numberAttribute(node: Node, wanted: string): number | undefined {
  for (const field of fieldsOf(node.bytes)) {
    if (field.number !== 5) continue;
    let [name, value]: [string, number | undefined] = ['', undefined];
    for (const part of partsOf(field)) {
      if (part.number === 1) name = textOf(part);
      if (part.number === 2) value = floatOf(part);
      if (part.number === 3) value = numberOf(part);
    }
    if (name === wanted) return value;
  }
  return undefined;
}

export const makeWeight = (bytes: Uint8Array): Weight => ({ ...readHead(bytes), bytes });

/** Makes an output: a tensor of numbers of any shape. */
export const makeOutput = (name: string, elem: number): Uint8Array =>
  joinBytes([textField(1, name), messageField(2, [messageField(1, [integerField(1, elem)])])]);

/** Returns the name of a ValueInfoProto. */
export function nameOf(value: Uint8Array): string {
  for (const field of fieldsOf(value)) if (field.number === 1) return textOf(field);
  return '';
}

/** Collects every name that a node reads, including those of nested graphs. */
export function namesIn(node: Uint8Array, into: Set<string>): void {
  for (const field of fieldsOf(node)) {
    if (field.number === 1) into.add(textOf(field));
    if (field.number !== 5) continue;
    for (const part of partsOf(field)) {
      if (part.number !== 6 && part.number !== 11) continue;
      for (const inner of partsOf(part)) {
        if (inner.number === 1) namesIn(bytesOf(inner), into);
        if (inner.number === 12) into.add(nameOf(bytesOf(inner)));
      }
    }
  }
}
