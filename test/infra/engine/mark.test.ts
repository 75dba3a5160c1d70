import { describe, expect, it } from 'vitest';
import { controlTensors } from '../../../infra/pool/engine/batch/sequence-controls.ts';
import { checkMark, type Mark, readMark } from '../../../infra/pool/engine/batch/sequence-mark.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { settle } from '../../../infra/pool/models/config/settle.ts';
import { decodeBytesElements } from '../../../shared/kserve/bytes-elements.ts';

const io = 'input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }';
const corrid = (type: string) =>
  `control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: ${type} } }`;

function configOf(controls: string, largest = 4) {
  const parsed = parseText(`max_batch_size: ${largest} ${io} sequence_batching { ${controls} }`);
  const config = parsed.ok ? settle(parsed.value, 'm') : parsed;
  if (!config.ok) throw new Error(config.refusal.reason);
  return config.value;
}
const mark = (id: number | string, start = false, end = false): Mark => ({ id, start, end });
const complaint = (controls: string, id: number | string) => {
  const checked = checkMark(configOf(controls), mark(id), 1);
  return checked.ok ? '' : checked.refusal.reason;
};

describe('A5: sequence parameters of a request', () => {
  it('is nothing without an id', () => {
    for (const sequence_id of [0, '', undefined])
      expect(readMark({ ...(sequence_id !== undefined && { sequence_id }), sequence_start: true })).toBeUndefined();
    expect(readMark({ sequence_id: '0', sequence_end: true })).toEqual(mark('0', false, true));
  });

  it('have to fit the control tensors', () => {
    expect(complaint('', 'a text')).toBe('');
    expect(complaint(corrid('TYPE_UINT64'), 2 ** 53 - 1)).toBe('');
    expect(complaint(corrid('TYPE_STRING'), 'a text')).toBe('');
    expect(complaint(corrid('TYPE_UINT64'), 'a text')).toContain(
      "data-type is 'BYTES', but model 'm' expects 'UINT64'",
    );
    expect(complaint(corrid('TYPE_STRING'), 7)).toContain("data-type is 'UINT64', but model 'm' expects 'BYTES'");
    expect(complaint(corrid('TYPE_UINT32'), 2 ** 32 - 1)).toBe('');
    expect(complaint(corrid('TYPE_UINT32'), 2 ** 32)).toContain('does not fit');
    expect(complaint(corrid('TYPE_INT32'), 2 ** 31)).toContain('does not fit');
  });

  it('reach the network as one configured row per request', () => {
    const flag = (name: string, kind: string, values: string) =>
      `control_input { name: "${name}" control { kind: CONTROL_SEQUENCE_${kind} ${values} } }`;
    const controls = [
      flag('S', 'START', 'fp32_false_true: [ -1, 2 ]'),
      flag('E', 'END', 'int32_false_true: [ 3, 4 ]'),
      flag('R', 'READY', 'bool_false_true: [ false, true ]'),
      corrid('TYPE_INT64'),
    ].join(' ');
    const tensors = controlTensors(configOf(controls), [mark(7, true, false), mark(9, false, true)]);
    expect(tensors.map(({ name, datatype, shape }) => [name, datatype, shape])).toEqual([
      ['S', 'FP32', [2, 1]],
      ['E', 'INT32', [2, 1]],
      ['R', 'BOOL', [2, 1]],
      ['ID', 'INT64', [2, 1]],
    ]);
    const [s, e, r, id] = tensors.map(({ bytes }) => bytes.buffer);
    expect([...new Float32Array(s!)]).toEqual([2, -1]);
    expect([...new Int32Array(e!)]).toEqual([3, 4]);
    expect([...new Uint8Array(r!)]).toEqual([1, 1]);
    expect([...new BigInt64Array(id!)]).toEqual([7n, 9n]);
  });

  it('a text id is a text; without batching there is no row', () => {
    const [id] = controlTensors(configOf(corrid('TYPE_STRING'), 0), [mark('Größe')]);
    expect(id?.shape).toEqual([1]);
    const read = decodeBytesElements(id!.bytes);
    expect(read.ok && read.value.map((element) => new TextDecoder().decode(element))).toEqual(['Größe']);
  });
});
