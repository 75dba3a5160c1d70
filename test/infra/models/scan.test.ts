import { symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readOnnx } from '../../../infra/pool/models/onnx/read-onnx.ts';
import { findExternal } from '../../../infra/pool/models/scan/onnx-file.ts';
import { scanPickle } from '../../../infra/pool/models/scan/pickle.ts';
import { scanFile } from '../../../infra/pool/models/scan/scan.ts';
import { listTar } from '../../../infra/pool/models/tar/read-tar.ts';
import { runs } from '../../seeds.ts';
import { folderForTest } from '../local/folder.ts';
import { blobOf, checkpointOf, evil, graphOf, hex, onnxOf, stateDicts, tarOf, zipOf } from './sources.ts';

const verdict = (scanned: { ok: boolean; refusal?: { kind: string } }) => (scanned.ok ? 'ok' : scanned.refusal?.kind);
const scan = async (name: string, content: Uint8Array | string) => verdict(await scanFile(await blobOf(name, content)));
const text = (value: string) => Buffer.concat([Buffer.from([0x8c, value.length]), Buffer.from(value)]);

describe('M1 pickles: only what is on the list', () => {
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

  it.each([
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
    // So often that a short string in front, of up to 255 bytes, cannot hold all of them.
    const imports = Buffer.from(`${'cos\nsystem\n'.repeat(30)}.`);
    fc.assert(
      fc.property(opcodes, (bytes) => {
        const got = scanPickle(Buffer.concat([bytes, imports]), 'w');
        // It ended before the import, or it was refused.
        expect(got.ok ? got.value <= bytes.length : got.refusal.kind === 'unsafe').toBe(true);
      }),
      { numRuns: runs(200, 20_000), examples: [[Uint8Array.of(67, 11)]] },
    );
  });
});

describe('M1 checkpoints', () => {
  it('zip, old form and plain pickle pass', async () => {
    expect(await scan('w.ckpt', checkpointOf(stateDicts[2]))).toBe('ok');
    expect(await scan('w.pt', stateDicts[4])).toBe('ok');
    const small = hex('80024b012e');
    const old = Buffer.concat([
      hex('80028a0a6cfc9c46f9206aa850192e'),
      small,
      small,
      stateDicts[2],
      small,
      Buffer.alloc(40, 9),
    ]);
    expect(await scan('w.pth', old)).toBe('ok');
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

describe('M1 whatever else comes along', () => {
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
    let sum = 0;
    for (let n = 0; n < 512; n++) sum += n >= 148 && n < 156 ? 32 : (tar[n] ?? 0);
    tar.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    return tar;
  };

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
    ['a link', changed(156, 0x32), 'unsafe'],
    ['a hard link', changed(156, 0x31), 'unsafe'],
    ['a device', changed(156, 0x33), 'unsafe'],
    ['a size over the end', changed(126, 0x37), 'damaged'],
    ['something else', Buffer.alloc(1024, 65), 'damaged'],
  ])('%s', async (_, bytes, expected) => expect(await list(bytes)).toBe(expected));
});
