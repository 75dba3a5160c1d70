import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  createEnvelope,
  type FileFacts,
  readHead,
  sealedBytes,
  UPLOAD_HEAD_BYTES,
} from '../../../shared/seal/envelope.ts';
import { openFile, openSmall, sealFile, sealRecords, sealSmall } from '../../../shared/seal/envelope-stream.ts';
import type { SealPrivateKey } from '../../../shared/seal/setup.ts';
import { generateZoneKey, importZoneKey, type ZoneKey } from '../../../shared/seal/zone-key.ts';
import { aeads } from './node-aead.ts';

const facts: FileFacts = { tenant: 'dev', upload: '01890a5d-ac96-774b-bcce-b302099a8057', name: 'upload' };
const other: FileFacts = { ...facts, upload: '01890a5d-ac96-774b-bcce-b302099a8058' };

let zone: ZoneKey;
let keys: Map<string, SealPrivateKey>;
let elsewhere: ZoneKey;

beforeAll(async () => {
  const [own, foreign] = await Promise.all([generateZoneKey(), generateZoneKey()]);
  zone = own.zoneKey;
  elsewhere = foreign.zoneKey;
  keys = new Map([[zone.kid, await importZoneKey(own.privateJwk)]]);
});

const known = (key: string) => keys.get(key);
const bytesOf = (length: number) => new Uint8Array(length).map((_, at) => (at * 7 + (at >> 9)) % 256);

function stream(whole: Uint8Array, cuts: readonly number[] = [70_000]): ReadableStream<Uint8Array> {
  let at = 0;
  let turn = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= whole.length) return controller.close();
      const size = Math.max(1, cuts[turn++ % cuts.length] ?? 1);
      controller.enqueue(whole.slice(at, at + size));
      at += size;
    },
  });
}

async function open(file: Uint8Array, expected = facts, cuts?: readonly number[], find = known) {
  const opened: Uint8Array[] = [];
  let detail: string | undefined;
  for await (const segment of openFile(stream(file, cuts), { expected, known: find })) {
    if (segment.ok) opened.push(segment.value);
    else {
      expect(segment.refusal.reason).toBe('seal_broken');
      detail = segment.refusal.detail;
    }
  }
  return { plain: Buffer.concat(opened), detail };
}

describe.each(aeads)('C5 A21 T4 a sealed file with %s', (_, aead) => {
  it('survives a round trip at any size and chunking', async () => {
    const sizes = fc.oneof(fc.nat({ max: 300 }), fc.constantFrom(65_535, 65_536, 65_537, 131_072, 200_000));
    const cuts = fc.array(fc.integer({ min: 1, max: 90_000 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(sizes, cuts, async (size, pieces) => {
        const plain = bytesOf(size);
        const sealed: Uint8Array[] = [];
        for await (const chunk of await sealFile(facts, zone, stream(plain, pieces), aead)) sealed.push(chunk);
        const file = Buffer.concat(sealed);
        const head = readHead(file.subarray(0, UPLOAD_HEAD_BYTES));
        expect(head).toMatchObject({ ok: true, value: { head: { ...facts, key: zone.kid, suite: 5 } } });
        expect(file.length).toBe(head.ok ? sealedBytes(head.value.length, size) : -1);
        const opened = await open(file, facts, pieces);
        expect(opened.detail).toBeUndefined();
        expect(opened.plain.equals(plain)).toBe(true);
      }),
      { numRuns: 25 },
    );
  });

  it('can be resumed from any record, with the same bytes', async () => {
    const plain = bytesOf(4 * 65_536 + 10);
    const envelope = await createEnvelope(facts, zone);
    const segments = Array.from({ length: 5 }, (_, at) => plain.subarray(at * 65_536, (at + 1) * 65_536));
    const once = await sealRecords(envelope, 0, aead);
    const whole: Uint8Array[] = [];
    for (const [at, segment] of segments.entries()) whole.push(await once.seal(segment, at === 4));
    for (const first of [1, 3, 4]) {
      const again = await sealRecords(envelope, first, aead);
      for (let at = first; at < 5; at += 1)
        expect(await again.seal(segments[at] as Uint8Array, at === 4)).toEqual(whole[at]);
    }
    const opened = await open(Buffer.concat([envelope.head, ...whole]));
    expect([opened.plain.equals(plain), opened.detail]).toEqual([true, undefined]);
  });
});

describe('C5 A21 T4 a sealed file', () => {
  const plain = bytesOf(3 * 65_536 + 5);
  const split = async (file: Uint8Array) => {
    const head = readHead(file);
    if (!head.ok) throw new Error('no head');
    const { length } = head.value;
    const record = sealedBytes(length, 65_536) - sealedBytes(length, 0);
    const records = Array.from({ length: 3 }, (_, at) => file.slice(length + at * record, length + (at + 1) * record));
    return { head: file.slice(0, length), records, last: file.slice(length + 3 * record) };
  };

  it('truncated anywhere is broken, and yields no foreign bytes', async () => {
    const file = await sealSmall(facts, zone, plain);
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: file.length - 1 }), async (length) => {
        const { plain: opened, detail } = await open(file.subarray(0, length));
        expect(detail).toBeDefined();
        expect(opened.equals(plain.subarray(0, opened.length))).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it('that is changed in any byte is broken', async () => {
    const file = await sealSmall(facts, zone, bytesOf(200));
    const change = fc.record({ at: fc.nat({ max: file.length - 1 }), by: fc.integer({ min: 1, max: 255 }) });
    await fc.assert(
      fc.asyncProperty(change, async ({ at, by }) => {
        const { plain: opened, detail } = await open(file.map((byte, index) => (index === at ? byte ^ by : byte)));
        expect([opened.length, detail === undefined]).toEqual([0, false]);
      }),
      { numRuns: 400 },
    );
  });

  it('with reordered, repeated, missing or foreign records is broken', async () => {
    const file = await split(await sealSmall(facts, zone, plain));
    const twin = await split(await sealSmall(facts, zone, plain));
    const [a, b, c] = file.records as [Uint8Array, Uint8Array, Uint8Array];
    const [, second] = twin.records as [Uint8Array, Uint8Array];
    for (const records of [[b, a, c], [a, c], [a, b, b, c], [a, second, c], twin.records]) {
      const { detail } = await open(Buffer.concat([file.head, ...records, file.last]));
      expect(detail).toMatch(/counter out of order|not authentic/);
    }
    expect((await open(Buffer.concat([twin.head, ...file.records, file.last]))).detail).toBe('record 0: not authentic');
    expect((await open(Buffer.concat([file.head, a, b, c, file.last, a]))).detail).toBe(
      'record 4: bytes after the final record',
    );
  });

  it('does not pass for another upload, tenant or file', async () => {
    const file = await sealSmall(facts, zone, plain);
    expect((await open(file, other)).detail).toBe('file: of another upload');
    expect((await open(file, { ...facts, tenant: 'acme' })).detail).toBe('file: of another tenant');
    expect((await open(file, { ...facts, name: '1/transcript' })).detail).toBe('file: another file of the upload');
    for (const claimed of [other, { ...facts, tenant: 'acm' }, { ...facts, name: 'uploaa' }]) {
      const text = Buffer.from(file).toString('latin1');
      const forged = text
        .replace(facts.upload, claimed.upload)
        .replace('"tenant":"dev"', `"tenant":"${claimed.tenant}"`)
        .replace('"name":"upload"', `"name":"${claimed.name}"`);
      expect((await open(Buffer.from(forged, 'latin1'), claimed)).detail).toBe('file: the key does not unwrap');
    }
  });

  it('R1 does not open in another zone, even with a known key', async () => {
    const file = await sealSmall(facts, elsewhere, plain);
    expect((await open(file)).detail).toBe('file: sealed to a key that this agent does not have');
    const forged = Buffer.from(Buffer.from(file).toString('latin1').replace(elsewhere.kid, zone.kid), 'latin1');
    expect((await open(forged)).detail).toBe('file: the key does not unwrap');
    const mistaken = () => keys.get(zone.kid);
    expect((await open(file, facts, undefined, mistaken)).detail).toBe('file: the key does not unwrap');
  });

  it('has one spelling of its head', async () => {
    const { head, length } = await readable();
    const json = JSON.stringify(head);
    const start = (text: string) => {
      const bytes = Buffer.from(text);
      return Buffer.concat([Buffer.from('AURICLE1'), Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
    };
    expect(start(json).length).toBe(length);
    expect(readHead(start(json)).ok).toBe(true);
    const { enc, ...less } = head;
    for (const text of [
      ` ${json}`,
      json.replace(':1,', ': 1,'),
      JSON.stringify({ ...less, enc }),
      JSON.stringify({ ...head, more: 1 }),
      JSON.stringify({ ...head, enc: stray(head.enc) }),
      JSON.stringify({ ...head, wrapped: stray(head.wrapped) }),
      JSON.stringify({ ...head, v: 2 }),
      JSON.stringify({ ...head, suite: 4 }),
      JSON.stringify({ ...head, tenant: '../x' }),
      JSON.stringify({ ...head, name: 'a/../b' }),
      '{',
      '[]',
    ])
      expect(readHead(start(text))).toMatchObject({
        refusal: { reason: 'seal_broken', detail: 'file: malformed head' },
      });
  });

  it('is recognised by its first bytes', () => {
    const detail = (bytes: Uint8Array) => {
      const read = readHead(bytes);
      return read.ok ? 'head' : read.refusal.detail;
    };
    expect(detail(Buffer.from('RIFF....WAVE'))).toBe('file: not a sealed file');
    expect(detail(Buffer.from('AURI'))).toBe('file: ends within the head');
    expect(detail(Buffer.from('AURICLE1\xff\xff', 'latin1'))).toBe('file: head too long');
    expect(detail(new Uint8Array())).toBe('file: ends within the head');
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => detail(bytes)?.startsWith('file: ')));
  });

  it('is sealed and opened in bounded memory, on demand', async () => {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pulled += 1;
          controller.enqueue(new Uint8Array(65_536));
        },
      },
      { highWaterMark: 0 },
    );
    const reader = (await sealFile(facts, zone, body)).getReader();
    await reader.read();
    expect(pulled).toBe(0);
    for (let at = 0; at < 4; at += 1) await reader.read();
    expect(pulled).toBeLessThanOrEqual(5);
    await reader.cancel();
  });

  it('reports a broken source, and an excessive length', async () => {
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.error(new Error('gone'));
      },
    });
    const reader = (await sealFile(facts, zone, body)).getReader();
    await reader.read();
    await expect(reader.read()).rejects.toThrow('gone');
    const file = await sealSmall(facts, zone, bytesOf(100));
    expect(await openSmall(stream(file), { expected: facts, known }, 99)).toMatchObject({
      refusal: { reason: 'seal_broken', detail: 'file: longer than what it is for' },
    });
    expect(await openSmall(stream(file), { expected: facts, known }, 100)).toMatchObject({ ok: true });
  });

  it('is not made for facts that could be read in two ways', async () => {
    for (const wrong of [{ tenant: 'a\0b' }, { upload: 'A' }, { name: '../x' }, { name: '' }])
      await expect(createEnvelope({ ...facts, ...wrong }, zone)).rejects.toThrow();
  });

  /** The same bytes in another spelling: the last character has bits that mean nothing. */
  function stray(text: string): string {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    return text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1) ?? '') ^ 1];
  }

  async function readable() {
    const { head } = await createEnvelope(facts, zone);
    const read = readHead(head);
    if (!read.ok) throw new Error('no head');
    return read.value;
  }
});
