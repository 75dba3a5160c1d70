import { bytesField, integerField, joinBytes, textField } from '../../../infra/pool/model-build/onnx/write-wire.ts';

/** Writes ONNX models by hand: just enough of onnx.proto for the small graphs of the contract suite. */
type Bytes = Uint8Array;
const join = (...parts: readonly Bytes[]): Bytes => joinBytes(parts);
const int = integerField;
const sub = (field: number, content: Bytes | string): Bytes =>
  typeof content === 'string' ? textField(field, content) : bytesField(field, content);

/** TensorProto.DataType numbers. */
export const elem = {
  FLOAT: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  STRING: 8,
  BOOL: 9,
  FLOAT16: 10,
  DOUBLE: 11,
  UINT32: 12,
  UINT64: 13,
} as const;
export type Elem = keyof typeof elem;

type Attribute = number | readonly number[] | Bytes;

/** Encodes an AttributeProto: an integer, a list of integers, or an encoded graph. */
function attribute(name: string, value: Attribute): Bytes {
  if (typeof value === 'number') return sub(5, join(sub(1, name), int(3, value), int(20, 2)));
  if (value instanceof Uint8Array) return sub(5, join(sub(1, name), sub(6, value), int(20, 5)));
  return sub(5, join(sub(1, name), ...value.map((item) => int(8, item)), int(20, 7)));
}

export interface Node {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, Attribute>>;
}

export interface Value {
  readonly name: string;
  readonly type: Elem;
  /** A text is a free dimension. */
  readonly dims: readonly (number | string)[];
}

export interface Graph {
  readonly nodes: readonly Node[];
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly constants?: readonly {
    name: string;
    type: 'INT64' | 'FLOAT' | 'BOOL' | 'INT32';
    dims: readonly number[];
    values: readonly number[];
  }[];
}

const value = (field: number, { name, type, dims }: Value): Bytes => {
  const shape = dims.map((dim) => sub(1, typeof dim === 'string' ? sub(2, dim) : int(1, dim)));
  return sub(field, join(sub(1, name), sub(2, sub(1, join(int(1, elem[type]), sub(2, join(...shape)))))));
};

const raw = {
  INT64: (values: readonly number[]) => new Uint8Array(BigInt64Array.from(values.map(BigInt)).buffer),
  INT32: (values: readonly number[]) => new Uint8Array(Int32Array.from(values).buffer),
  FLOAT: (values: readonly number[]) => new Uint8Array(Float32Array.from(values).buffer),
  BOOL: (values: readonly number[]) => Uint8Array.from(values),
};

/** A GraphProto, for a model or for the body of a loop. */
export function encodeGraph({ nodes, inputs, outputs, constants = [] }: Graph, name = 'graph'): Bytes {
  return join(
    ...nodes.map(({ op, inputs: from, outputs: to, attributes = {} }) =>
      sub(
        1,
        join(
          ...from.map((one) => sub(1, one)),
          ...to.map((one) => sub(2, one)),
          sub(3, `${op}_${to[0]}`),
          sub(4, op),
          ...Object.entries(attributes).map(([key, item]) => attribute(key, item)),
        ),
      ),
    ),
    sub(2, name),
    ...constants.map(({ name: called, type, dims, values }) =>
      sub(5, join(...dims.map((dim) => int(1, dim)), int(2, elem[type]), sub(8, called), sub(9, raw[type](values)))),
    ),
    ...inputs.map((one) => value(11, one)),
    ...outputs.map((one) => value(12, one)),
  );
}

/** A ModelProto: IR version 8, opset 17. */
export const encodeModel = (graph: Graph): Bytes =>
  join(int(1, 8), sub(2, 'contract suite'), sub(7, encodeGraph(graph)), sub(8, int(2, 17)));
