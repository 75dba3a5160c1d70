// Hand-written model sources: tars, zips, checkpoints, networks.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32, gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { type Blob, openBlob } from '../../../infra/pool/model-build/blob.ts';
import { checksum, padding, writeHeader } from '../../../infra/pool/model-build/tar/header.ts';
import { folderForTest } from '../local/folder.ts';

export const hex = (text: string): Buffer => Buffer.from(text, 'hex');

/** `OrderedDict(a=tensor, b=tensor)` as Python's pickle writes it in protocol 2, 4 and 5. */
export const stateDicts = {
  2: hex(
    '800263636f6c6c656374696f6e730a4f726465726564446963740a71002952710128580100000061710263746f7263682e5f7574696c730a5f7265' +
      '6275696c645f74656e736f725f76320a71032828580700000073746f72616765710463746f7263680a466c6f617453746f726167650a71055801' +
      '000000307106580300000063707571074b04747108514b004b024b028671094b024b0186710a8968002952710b74710c52710d58010000006271' +
      '0e6803282868046805580100000031710f68074b04747110514b0068094b024b0186711189680029527112747113527114752e',
  ),
  4: hex(
    '800495c5000000000000008c0b636f6c6c656374696f6e73948c0b4f72646572656444696374949394295294288c0161948c0c746f7263682e5f' +
      '7574696c73948c125f72656275696c645f74656e736f725f763294939428288c0773746f72616765948c05746f726368948c0c466c6f61745374' +
      '6f726167659493948c0130948c03637075944b047494514b004b024b0286944b024b018694896802295294749452948c01629468072828680868' +
      '0b8c013194680d4b047494514b00680f4b024b01869489680229529474945294752e',
  ),
} as const;

/** Pickles that call `os.system`, in protocol 0, 2 and 4. */
export const evil = {
  0: hex('63706f7369780a73797374656d0a70300a2856747275650a70310a7470320a5270330a2e'),
  2: hex('800263706f7369780a73797374656d0a710058040000007472756571018571025271032e'),
  4: hex('8004951f000000000000008c05706f736978948c0673797374656d9493948c047472756594859452942e'),
} as const;

export type Entries = readonly (readonly [name: string, content: Uint8Array | string])[];

const bytesOf = (content: Uint8Array | string) => (typeof content === 'string' ? Buffer.from(content) : content);

/** A header of a tar with another kind of entry, and with its sum. */
export function headerOf(name: string, size: number, type: string): Buffer {
  const header = Buffer.from(writeHeader(name, size));
  header.write(type, 156, 'latin1');
  return summed(header);
}

export function summed(tar: Buffer): Buffer {
  tar.write(`${checksum(tar.subarray(0, 512)).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return tar;
}

/** Records of an extended header, for the entry that follows. */
export function paxOf(...records: (readonly [key: string, value: string])[]): Buffer {
  const text = records
    .map(([key, value]) => {
      const rest = ` ${key}=${value}\n`;
      const bytes = Buffer.byteLength(rest);
      const length = bytes + String(bytes + 2).length;
      return `${length}${rest}`;
    })
    .join('');
  const size = Buffer.byteLength(text);
  return Buffer.concat([headerOf('pax', size, 'x'), Buffer.from(text), Buffer.alloc(padding(size))]);
}

export function tarOf(entries: Entries): Buffer {
  const blocks = entries.flatMap(([name, content]) => {
    const bytes = bytesOf(content);
    return [writeHeader(name, bytes.length), bytes, Buffer.alloc(padding(bytes.length))];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

/** A zip without compression, as PyTorch writes it. `says` changes the directory's sizes. */
export function zipOf(entries: Entries, says: (size: number) => number = (size) => size): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [name, content] of entries) {
    const bytes = bytesOf(content);
    const written = Buffer.from(name);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt32LE(crc32(bytes), 10);
    fields.writeUInt32LE(bytes.length, 14);
    fields.writeUInt32LE(says(bytes.length), 18);
    fields.writeUInt16LE(written.length, 22);
    const local = Buffer.concat([hex('504b0304'), fields, written, bytes]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    directory.push(Buffer.concat([hex('504b01021400'), fields, rest, written]));
    parts.push(local);
    at += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(listed.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, listed, hex('504b0506'), end]);
}

/** A checkpoint as `torch.save` writes it. */
export const checkpointOf = (pickle: Uint8Array, more: Entries = []): Buffer =>
  zipOf([
    ['archive/data.pkl', pickle],
    ['archive/byteorder', 'little'],
    ['archive/data/0', Buffer.alloc(16, 1)],
    ['archive/data/1', Buffer.alloc(16, 2)],
    ['archive/version', '3\n'],
    ...more,
  ]);

/** A blob like an archive's entry: in a file, under a name. */
export async function blobOf(name: string, content: Uint8Array | string): Promise<Blob> {
  const file = path.join(folderForTest(), 'blob');
  writeFileSync(file, content);
  const opened = await openBlob(file, name);
  onTestFinished(opened.close);
  return opened.blob;
}

export const charConfig = `# NeMo
target: nemo.collections.asr.models.ctc_models.EncDecCTCModel
sample_rate: 16000
labels:
  - ' '
  - a
  - b
  - ''''
preprocessor:
  _target_: nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor
  sample_rate: 16000
  window_stride: 0.01
encoder:
  subsampling_factor: 4
  jasper:
  - filters: 256
    repeat: 1
    kernel: [33]
`;

/** A `.nemo` in its common forms: with or without `./`, compressed or not. */
export function nemoOf(files: Entries, form: { dots?: boolean; packed?: boolean } = {}): Buffer {
  const tar = tarOf(files.map(([name, content]) => [form.dots ? `./${name}` : name, content] as const));
  return form.packed ? gzipSync(tar) : tar;
}

function varint(value: number): Buffer {
  const out: number[] = [];
  let rest = value;
  do {
    out.push((rest & 127) | (rest > 127 ? 128 : 0));
    rest >>>= 7;
  } while (rest > 0);
  return Buffer.from(out);
}
const int = (field: number, value: number) => Buffer.concat([varint(field << 3), varint(value)]);
export const sub = (field: number, ...content: (Uint8Array | string)[]): Buffer => {
  const body = Buffer.concat(content.map(bytesOf));
  return Buffer.concat([varint((field << 3) | 2), varint(body.length), body]);
};

/** An entry of a tensor's external data location. */
export const pairOf = (key: string, text: string, more: Uint8Array = Buffer.alloc(0)): Buffer =>
  sub(13, sub(1, key), sub(2, text), more);

/** A network Y = operator(X) with one weight, optionally external. */
export function onnxOf(
  options: {
    operator?: string;
    domain?: string;
    location?: string;
    length?: number;
    nested?: Uint8Array;
    /** Further members of the location pair, the weight and the node. */
    more?: { pair?: Uint8Array; weight?: Uint8Array; node?: Uint8Array };
  } = {},
): Buffer {
  const { operator = 'Identity', domain = '', location, length = 16, nested, more = {} } = options;
  const none = Buffer.alloc(0);
  const value = (name: string) => sub(1, name);
  const type = sub(2, sub(1, int(1, 1), sub(2, sub(1, sub(2, 'N')), sub(1, int(1, 4)))));
  const where =
    location === undefined
      ? [sub(9, Buffer.alloc(16))]
      : [pairOf('location', location, more.pair), pairOf('length', String(length)), int(14, 1)];
  const weight = sub(5, int(1, 4), int(2, 1), sub(8, 'w'), ...where, more.weight ?? none);
  const inner = nested ? [sub(5, sub(1, 'body'), sub(6, nested), int(20, 5))] : [];
  const node = sub(1, sub(1, 'X'), sub(2, 'Y'), sub(4, operator), sub(7, domain), ...inner, more.node ?? none);
  return Buffer.concat([
    int(1, 8),
    sub(7, node, sub(2, 'graph'), weight, sub(11, value('X'), type), sub(12, value('Y'), type)),
    sub(8, int(2, 17)),
  ]);
}

/** A graph for an attribute, with one node of that operator. */
export const graphOf = (operator: string, domain: string): Buffer => sub(1, sub(4, operator), sub(7, domain));
