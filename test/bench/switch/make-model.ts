import { once } from 'node:events';
import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { integerField, messageField, textField } from '../../../infra/pool/model-build/onnx/write-wire.ts';

/** Floats of a row of the table. */
const WIDTH = 1_024;
const FLOAT = 1;
const INT64 = 7;
/** `data_location` of a weight outside the graph (onnx.proto, TensorProto). */
const EXTERNAL = 1;

const describeShape = (dims: readonly (number | string)[]) =>
  messageField(
    2,
    dims.map((dim) => messageField(1, [typeof dim === 'number' ? integerField(1, dim) : textField(2, dim)])),
  );

const describeValue = (name: string, type: number, dims: readonly (number | string)[]) => [
  textField(1, name),
  messageField(2, [messageField(1, [integerField(1, type), describeShape(dims)])]),
];

const entryOf = (key: string, value: string) => messageField(13, [textField(1, key), textField(2, value)]);

/** Graph that looks up rows of a table, whose weights are in a file beside it. */
function graphOf(rows: number): Uint8Array {
  const table = messageField(5, [
    integerField(1, rows),
    integerField(1, WIDTH),
    integerField(2, FLOAT),
    textField(8, 'TABLE'),
    entryOf('location', 'weights.bin'),
    entryOf('offset', '0'),
    entryOf('length', String(rows * WIDTH * 4)),
    integerField(14, EXTERNAL),
  ]);
  const gather = messageField(1, [
    textField(1, 'TABLE'),
    textField(1, 'INDEX'),
    textField(2, 'ROW'),
    textField(3, 'gather'),
    textField(4, 'Gather'),
  ]);
  return messageField(7, [
    gather,
    textField(2, 'table'),
    table,
    messageField(11, describeValue('INDEX', INT64, ['n'])),
    messageField(12, describeValue('ROW', FLOAT, ['n', WIDTH])),
  ]);
}

const configOf = (name: string) => `name: "${name}"
backend: "onnxruntime"
input [ { name: "INDEX" data_type: TYPE_INT64 dims: [ -1 ] } ]
output [ { name: "ROW" data_type: TYPE_FP32 dims: [ -1, ${WIDTH} ] } ]
parameters { key: "task" value { string_value: "infer" } }
`;

/** Writes a model of about so many bytes into a repository; its weights begin with `mark`. */
export async function makeModel(repository: string, bytes: number, mark: number, name = 'table'): Promise<void> {
  const rows = Math.floor(bytes / (WIDTH * 4));
  const folder = path.join(repository, name, '1');
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(repository, name, 'config.pbtxt'), configOf(name));
  const opset = messageField(8, [integerField(2, 17)]);
  const model = Buffer.concat([integerField(1, 8), textField(2, 'auricle'), graphOf(rows), opset]);
  writeFileSync(path.join(folder, 'model.onnx'), model);
  const weights = createWriteStream(path.join(folder, 'weights.bin'));
  for (let row = 0; row < rows; row += 1) {
    if (!weights.write(Buffer.from(new Float32Array(WIDTH).fill(row + mark).buffer))) await once(weights, 'drain');
  }
  weights.end();
  await once(weights, 'close');
}
