import { symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readOnnx } from '../../../infra/pool/model-build/onnx/read-onnx.ts';
import { findExternal } from '../../../infra/pool/model-build/scan/onnx-file.ts';
import { scanPickle } from '../../../infra/pool/model-build/scan/pickle.ts';
import { scanFile } from '../../../infra/pool/model-build/scan/scan.ts';
import { listTar } from '../../../infra/pool/model-build/tar/read-tar.ts';
import { runs } from '../../seeds.ts';
import { folderForTest } from '../local/folder.ts';
import {
  blobOf,
  checkpointOf,
  evil,
  graphOf,
  headerOf,
  hex,
  onnxOf,
  pairOf,
  paxOf,
  stateDicts,
  sub,
  summed,
  tarOf,
  zipOf,
} from './sources.ts';

const verdict = (scanned: { ok: boolean; refusal?: { kind: string } }) => (scanned.ok ? 'ok' : scanned.refusal?.kind);
const scan = async (name: string, content: Uint8Array | string) => verdict(await scanFile(await blobOf(name, content)));
const text = (value: string) => Buffer.concat([Buffer.from([0x8c, value.length]), Buffer.from(value)]);

describe('M1 pickles: only allowed imports', () => {
  it.each([2, 4] as const)('a state dict of protocol %i passes', (protocol) => {
    const bytes = stateDicts[protocol];
    expect(scanPickle(bytes, 'w')).toEqual({ ok: true, value: bytes.length });
  });

  it.each([0, 2, 4] as const)('os.system of protocol %i is named', (protocol) => {
    expect(scanPickle(evil[protocol], 'w')).toMatchObject({
      refusal: { kind: 'unsafe', text: expect.stringContaining('"posix.system"') },
    });
  });

  it('names that only come together while it is read are refused', () => {
    // 'posix' from a text of another kind, from an integer, from the memo under another number.
    const builds = [
      [hex('8004'), hex('55'), hex('05'), Buffer.from('posix'), text('system'), hex('93'), hex('2e')],
      [hex('8004'), hex('4b01'), text('system'), hex('93'), hex('2e')],
      [hex('8004'), text('posix'), hex('94'), hex('30'), hex('6800'), text('system'), hex('93'), hex('2e')],
    ];
    for (const build of builds) expect(verdict(scanPickle(Buffer.concat(build), 'w'))).toBe('unsafe');
  });

  it('memo numbers must be unambiguous', () => {
    const put = (value: string, number: string) => [text(value), Buffer.from(`p${number}\n0`)];
    const called = (one: string, other: string) =>
      Buffer.concat(
        [hex('8004'), ...put('collections', '10'), ...put('OrderedDict', '20'), ...put('posix', one)].concat([
          ...put('system', other),
          Buffer.from('g10\ng20\n'),
          hex('932e'),
        ]),
      );
    expect(verdict(scanPickle(called('11', '21'), 'w'))).toBe('ok');
    // Python reads all of these as 10 and 20, and would call posix.system.
    for (const [one, other] of [
      ['1_0', '2_0'],
      ['+10', '+20'],
      [' 10', ' 20'],
      ['10 ', '20 '],
      ['010', '020'],
      ['१०', '२०'],
    ] as const)
      expect(scanPickle(called(one, other), 'w')).toMatchObject({ refusal: { text: expect.stringContaining('memo') } });
    for (const number of ['', '-1', '0x1', '1e1', '1.0', '99999999999'])
      expect(verdict(scanPickle(called('11', number), 'w'))).toBe('unsafe');
    expect(verdict(scanPickle(Buffer.concat([hex('80044e9430'), Buffer.from('g0_0\n.')]), 'w'))).toBe('unsafe');
  });

  it.each([
    ['a copy of a mark', '800228322e'],
    ['EXT1, which imports by number', '8002820152 2e'],
    ['an opcode that does not exist', '80027f2e'],
    ['one that does not end', '80024e'],
    ['a stack that is empty', '8002302e'],
    ['a group that was not begun', '80026c2e'],
    ['a memo that was never written', '800268092e'],
    ['INST', '2869706f7369780a73797374656d0a2e'],
  ])('%s', (_, bytes) => expect(verdict(scanPickle(hex(bytes.replaceAll(' ', '')), 'w'))).toBe('unsafe'));

  it('any bytes are followed to a verdict, and no import gets by', () => {
    const opcodes = fc.uint8Array({ minLength: 1, maxLength: 60 });
    // Repeated so often that a short string in front, of up to 255 bytes, cannot contain all imports.
    const imports = Buffer.from(`${'cos\nsystem\n'.repeat(30)}.`);
    fc.assert(
      fc.property(opcodes, (bytes) => {
        const got = scanPickle(Buffer.concat([bytes, imports]), 'w');
        // The pickle ended before the import, or was refused.
        expect(got.ok ? got.value <= bytes.length : got.refusal.kind === 'unsafe').toBe(true);
      }),
      { numRuns: runs(200, 20_000), examples: [[Uint8Array.of(67, 11)]] },
    );
  });
});

describe('M1 checkpoints', () => {
  it('a zip passes, the formats before PyTorch 1.6 are refused', async () => {
    expect(await scan('w.ckpt', checkpointOf(stateDicts[2]))).toBe('ok');
    expect(await scan('w.pt', stateDicts[4])).toBe('unsafe');
    expect(await scan('w.pth', hex('80028a0a6cfc9c46f9206aa850192e'))).toBe('unsafe');
  });

  it.each([
    ['a pickle that calls', checkpointOf(evil[2])],
    ['a second pickle behind the first', checkpointOf(Buffer.concat([stateDicts[2], evil[2]]))],
    ['TorchScript', checkpointOf(stateDicts[2], [['archive/code/model.py', 'import os']])],
    ['another pickle beside', checkpointOf(stateDicts[2], [['archive/extra.pkl', evil[2]]])],
    ['a name that leads out', checkpointOf(stateDicts[2], [['../archive/data/2', 'x']])],
    ['a name given twice', checkpointOf(stateDicts[2], [['archive/data.pkl', evil[2]]])],
    ['no pickle', zipOf([['archive/version', '3']])],
    ['a zip with something before it', Buffer.concat([Buffer.from('#!/bin/sh\n'), checkpointOf(stateDicts[2])])],
  ])('%s is refused', async (_, bytes) => expect(['unsafe', 'damaged']).toContain(await scan('w.ckpt', bytes)));

  it('a directory at an ambiguous place or of ambiguous length', async () => {
    const whole = checkpointOf(stateDicts[2]);
    const [body, end] = [whole.subarray(0, -22), whole.subarray(-22)];
    expect(await scan('w.ckpt', Buffer.concat([body, Buffer.alloc(64), end]))).toBe('damaged');
    expect(await scan('w.ckpt', Buffer.concat([whole, Buffer.alloc(4)]))).toBe('damaged');
    const fewer = Buffer.from(whole);
    fewer.writeUInt16LE(whole.readUInt16LE(whole.length - 12) - 1, whole.length - 12);
    expect(await scan('w.ckpt', fewer)).toBe('damaged');
    // Another name in an extra field, which newer readers use.
    const named = Buffer.from(whole);
    const last = whole.lastIndexOf(hex('504b0102'));
    named.writeUInt16LE(9, last + 30);
    named.writeUInt32LE(whole.readUInt32LE(whole.length - 10) + 9, whole.length - 10);
    const extra = (kind: string) =>
      Buffer.concat([named.subarray(0, -22), hex(kind), hex('05000100000000'), named.subarray(-22)]);
    expect(await scan('w.ckpt', extra('7570'))).toBe('damaged');
    expect(await scan('w.ckpt', extra('7571'))).toBe('ok');
  });

  it('sizes that are not true', async () => {
    expect(
      await scan(
        'w.ckpt',
        zipOf([['archive/data.pkl', stateDicts[2]]], () => 0xfffffff0),
      ),
    ).not.toBe('ok');
    const whole = checkpointOf(stateDicts[2]);
    for (const cut of [10, 200, whole.length - 30]) expect(await scan('w.ckpt', whole.subarray(0, cut))).not.toBe('ok');
  });
});

describe('M1 networks', () => {
  it('standard operators pass; others, in graphs within graphs too, are named', async () => {
    expect(await scan('n.onnx', onnxOf())).toBe('ok');
    expect(await scan('n.onnx', onnxOf({ operator: 'MatMulNBits', domain: 'com.microsoft' }))).toBe('ok');
    expect(await scan('n.onnx', onnxOf({ operator: 'PythonOp', domain: 'com.microsoft' }))).toBe('unsafe');
    expect(await scan('n.onnx', onnxOf({ operator: 'Anything', domain: 'my.company' }))).toBe('unsafe');
    const nested = onnxOf({ operator: 'Loop', nested: graphOf('EPContext', 'com.microsoft') });
    const found = await scanFile(await blobOf('n.onnx', nested));
    expect(found).toMatchObject({ refusal: { text: expect.stringContaining('EPContext') } });
  });

  it.each(['/etc/passwd', '../w.bin', 'a/../../w.bin', './w.bin', 'a\\w.bin', 'C:w.bin', ''])(
    'weights at %s are refused',
    async (location) => expect(await scan('n.onnx', onnxOf({ location }))).toBe('unsafe'),
  );

  it('refuses content that readers interpret differently', async () => {
    const out = { location: '../../w.bin' };
    expect(await scan('n.onnx', onnxOf(out))).toBe('unsafe');
    const fixed = (field: number, value: string) => Buffer.concat([Buffer.of(field * 8 + 1), Buffer.from(value)]);
    const known = { location: 'w.bin' };
    expect(await scan('n.onnx', onnxOf(known))).toBe('ok');
    // A place, an operator, a number, each in a field of another type.
    expect(await scan('n.onnx', onnxOf({ ...out, more: { pair: fixed(2, 'file.bin') } }))).toBe('unreadable');
    expect(await scan('n.onnx', onnxOf({ domain: 'evil', more: { node: fixed(7, 'ai.onnx.') } }))).toBe('unreadable');
    expect(await scan('n.onnx', onnxOf({ ...known, more: { weight: fixed(14, '\0\0\0\0\0\0\0\0') } }))).toBe(
      'unreadable',
    );
    // A field number with that of the operator in its lower half.
    const wide = Buffer.concat([hex('a280808010'), hex('04'), Buffer.from('PyOp')]);
    expect(await scan('n.onnx', onnxOf({ more: { node: wide } }))).toBe('unreadable');
    // A place given twice, and one under a name that only looks like it.
    for (const key of ['location', '\ufefflocation'])
      expect(await scan('n.onnx', onnxOf({ ...out, more: { weight: pairOf(key, 'w.bin') } }))).not.toBe('ok');
  });

  it('a function of the file vouches for no operator of an engine', async () => {
    const own = (domain: string) =>
      Buffer.concat([onnxOf({ operator: 'EPContext', domain }), sub(25, sub(1, 'EPContext'), sub(10, domain))]);
    expect(await scan('n.onnx', own('pkg.onnxscript.torch_lib'))).toBe('ok');
    for (const domain of ['com.microsoft', 'ai.onnx.contrib', 'my.company'])
      expect(await scan('n.onnx', own(domain))).toBe('unsafe');
  });

  it('weights beside: a plain file, long enough', async () => {
    const folder = folderForTest();
    const file = path.join(folder, 'n.onnx');
    writeFileSync(path.join(folder, 'w.bin'), Buffer.alloc(16));
    symlinkSync('/etc/hosts', path.join(folder, 'link.bin'));
    const look = async (options: Parameters<typeof onnxOf>[0]) => {
      const found = await findExternal(file, readOnnx(onnxOf(options)));
      return found.ok ? found.value : found.refusal.kind;
    };
    expect(await look({ location: 'w.bin' })).toEqual(['w.bin']);
    expect(await look({ location: 'w.bin', length: 17 })).toBe('damaged');
    expect(await look({ location: 'none.bin' })).toBe('unreadable');
    expect(await look({ location: 'link.bin' })).toBe('unsafe');
  });

  it('cut or changed bytes end in a verdict', async () => {
    const whole = onnxOf({ location: 'w.bin' });
    for (let length = 0; length < whole.length; length++) {
      expect(['unreadable', 'unsafe', 'ok']).toContain(await scan('n.onnx', whole.subarray(0, length)));
    }
    expect(await scan('n.onnx', Buffer.alloc(0))).toBe('unreadable');
  });
});

describe('M1 other files', () => {
  it.each([
    ['labels.csv', 'O\nB-PER\n', 'ok'],
    ['vocab.txt', '\x7fELF\x00', 'unsafe'],
    ['vocab.txt', Buffer.from([0xff, 0xfe, 65]), 'unsafe'],
    ['words.lm.gz', gzipSync('\\data\\\n'), 'ok'],
    ['words.lm.gz', Buffer.from('1f8b0011', 'hex'), 'damaged'],
    ['tokenizer.model', hex('0a080a0161151234abcd'), 'ok'],
    ['tokenizer.model', evil[2], 'unsafe'],
    [
      'a.npy',
      Buffer.concat([
        hex('934e554d5059010076'),
        hex('00'),
        Buffer.from("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"),
      ]),
      'ok',
    ],
    [
      'a.npy',
      Buffer.concat([
        hex('934e554d5059010076'),
        hex('00'),
        Buffer.from("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"),
      ]),
      'unsafe',
    ],
    ['run.sh', 'echo', 'unsafe'],
    ['library.so', 'x', 'unsafe'],
  ])('%s: %#', async (name, content, expected) => expect(await scan(name, content)).toBe(expected));
});

describe('M1 tars', () => {
  const list = async (bytes: Uint8Array) => {
    const files = await listTar(await blobOf('a.nemo', bytes));
    return files.ok ? files.value.map(({ name }) => name) : files.refusal.kind;
  };
  const changed = (at: number, byte: number) => {
    const tar = tarOf([['a', 'x']]);
    tar[at] = byte;
    return summed(tar);
  };
  const extended = (...records: Parameters<typeof paxOf>) => Buffer.concat([paxOf(...records), tarOf([['a', 'x']])]);

  it('names and sizes of extended headers', async () => {
    expect(await list(extended(['path', 'b'], ['size', '1'], ['mtime', '1.5']))).toEqual(['b']);
    const folders = Buffer.concat([headerOf('./', 0, '5'), headerOf('b/', 0, '5'), tarOf([['b/c', 'y']])]);
    expect(await list(folders)).toEqual(['b/c']);
  });

  it('with and without ./', async () => {
    expect(
      await list(
        tarOf([
          ['./a.yaml', 'x'],
          ['b/c', 'y'],
        ]),
      ),
    ).toEqual(['a.yaml', 'b/c']);
  });

  it.each([
    ['a name that leads out', tarOf([['../a', 'x']]), 'unsafe'],
    ['an absolute name', tarOf([['/a', 'x']]), 'unsafe'],
    [
      'a name given twice',
      tarOf([
        ['a', 'x'],
        ['./a', 'y'],
      ]),
      'unsafe',
    ],
    [
      'a file in a file',
      tarOf([
        ['x.txt', 'x'],
        ['x.txt/y.txt', 'y'],
      ]),
      'unsafe',
    ],
    [
      'a folder that is a file',
      tarOf([
        ['x/y.txt', 'x'],
        ['x', 'y'],
      ]),
      'unsafe',
    ],
    [
      'names that differ in case',
      tarOf([
        ['a.txt', 'x'],
        ['A.txt', 'y'],
      ]),
      'unsafe',
    ],
    [
      'names that look alike',
      tarOf([
        ['\u00e9.txt', 'x'],
        ['e\u0301.txt', 'y'],
      ]),
      'unsafe',
    ],
    ['a name that is read backwards', tarOf([['a\u202etxt.ckpt', 'x']]), 'unsafe'],
    ['a control character', tarOf([['a\x01b', 'x']]), 'unsafe'],
    ['a name that is not UTF-8', changed(0, 0xff), 'unsafe'],
    ['a size below zero', extended(['size', '-1']), 'unsafe'],
    ['a size with an exponent', extended(['size', '1e0']), 'unsafe'],
    ['a size said twice', extended(['size', '1'], ['size', '1']), 'unsafe'],
    ['a name said twice', Buffer.concat([paxOf(['path', 'b']), extended(['path', 'c'])]), 'unsafe'],
    ['another name for some', extended(['GNU.sparse.name', 'b']), 'unsafe'],
    ['a folder with a content', Buffer.concat([headerOf('b', 512, '5'), tarOf([['c', 'y']])]), 'unsafe'],
    ['a file called like a folder', tarOf([['b/', 'x']]), 'unsafe'],
    ['a folder elsewhere', Buffer.concat([headerOf('../b', 0, '5'), tarOf([['c', 'y']])]), 'unsafe'],
    ['a link', changed(156, 0x32), 'unsafe'],
    ['a hard link', changed(156, 0x31), 'unsafe'],
    ['a device', changed(156, 0x33), 'unsafe'],
    ['a size over the end', changed(126, 0x37), 'damaged'],
    ['something else', Buffer.alloc(1024, 65), 'damaged'],
  ])('%s', async (_, bytes, expected) => expect(await list(bytes)).toBe(expected));
});
