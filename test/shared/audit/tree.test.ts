import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RightEdge } from '../../../functions/audit/log/right-edge.ts';
import {
  hashRange,
  proveConsistency,
  proveInclusion,
  type ReadSubtree,
  verifyConsistency,
  verifyInclusion,
} from '../../../shared/audit/proof.ts';
import {
  packEntries,
  partialTiles,
  readTilePath,
  tilePath,
  tileWith,
  unpackEntries,
} from '../../../shared/audit/tile.ts';
import { emptyRoot, type Hash, hashLeaf, rootOf } from '../../../shared/audit/tree.ts';
import { TreeWalk } from '../../../shared/audit/tree-walk.ts';
import { sha256 } from '../../../shared/sha256.ts';

const numRuns = Number(process.env.SEEDS ?? 200);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));

/** The entries of the Certificate Transparency test suite, and the root after each. */
const classic = [
  ['', '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d'],
  ['00', 'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125'],
  ['10', 'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77'],
  ['2021', 'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7'],
  ['3031', '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4'],
  ['40414243', '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef'],
  ['5051525354555657', 'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c'],
  ['606162636465666768696a6b6c6d6e6f', '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328'],
] as const;

const entriesOf = (count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, at) => new TextEncoder().encode(`entry ${at}`));

/** Subtrees straight from the definition. */
const readerOf =
  (hashes: readonly Hash[]): ReadSubtree =>
  async (height, at) =>
    rootOf(hashes, at * 2 ** height, (at + 1) * 2 ** height);

describe('C9 hashes of the audit log', () => {
  it('RFC 6234: SHA-256 of the empty text and of "abc"', () => {
    expect(hex(sha256())).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(hex(sha256(new TextEncoder().encode('abc')))).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
  });

  it('SHA-256 in any number of parts equals OpenSSL’s', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 4 }), (parts) => {
        expect(hex(sha256(...parts))).toBe(createHash('sha256').update(Buffer.concat(parts)).digest('hex'));
      }),
      { numRuns },
    );
  });

  it('RFC 6962 §2.1: the roots of the classic eight leaves', () => {
    const edge = new RightEdge();
    for (const [entry, root] of classic) {
      edge.append(bytes(entry));
      expect(hex(edge.root())).toBe(root);
    }
    expect(hex(emptyRoot)).toBe(hex(sha256()));
  });
});

describe('C9 tiles of the audit log', () => {
  it('C2SP tlog-tiles: the path of tile 1234067 and of a partial one', () => {
    expect(tilePath({ level: 0, index: 1_234_067, width: 256 })).toBe('tile/0/x001/x234/067');
    expect(tilePath({ level: 1, index: 5, width: 17 })).toBe('tile/1/005.p/17');
    expect(tilePath({ level: 'entries', index: 0, width: 256 })).toBe('tile/entries/000');
  });

  it('a path is read as it is written, and no other way', () => {
    const tile = fc.record({
      level: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constant('entries' as const)),
      index: fc.integer({ min: 0, max: 2 ** 40 }),
      width: fc.integer({ min: 1, max: 256 }),
    });
    fc.assert(
      fc.property(tile, (one) => {
        expect(readTilePath(tilePath(one))).toEqual(one);
      }),
      { numRuns },
    );
    for (const wrong of [
      ...['tile/0/1', 'tile/00/001', 'tile/6/001', 'tile/0/x000/001', 'tile/0/001.p/0', 'tile/0/001.p/256'],
      ...['tile/0/001.p/07', 'tile/0/../001', 'tile/0/001/', '/tile/0/001', 'tile/entries/x01/001', 'tile/-1/001'],
    ]) {
      expect(readTilePath(wrong), wrong).toBeUndefined();
    }
  });

  it('C2SP tlog-tiles: a log of 70,000 entries and one of 256', () => {
    expect(partialTiles(70_000)).toEqual([
      { level: 0, index: 273, width: 112 },
      { level: 1, index: 1, width: 17 },
      { level: 2, index: 0, width: 1 },
      { level: 'entries', index: 273, width: 112 },
    ]);
    expect(partialTiles(256)).toEqual([{ level: 1, index: 0, width: 1 }]);
    expect(tileWith(0, 69_999, 70_000)).toEqual({ level: 0, index: 273, width: 112 });
  });

  it('bundles give back their entries, and nothing when one is cut off', () => {
    const entries = fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 8 });
    fc.assert(
      fc.property(entries, (some) => {
        const packed = packEntries(some);
        expect(unpackEntries(packed)?.map(hex)).toEqual(some.map(hex));
        if (packed.length > 0 && some.at(-1)?.length) expect(unpackEntries(packed.subarray(0, -1))).toBeUndefined();
      }),
      { numRuns },
    );
    expect(() => packEntries([new Uint8Array(65_536)])).toThrow(RangeError);
  });

  it('any growth of the right edge gives the same root and files', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 700 }), fc.integer({ min: 0, max: 700 }), (count, cut) => {
        const entries = entriesOf(count);
        const once = new RightEdge();
        for (const entry of entries) once.append(entry);
        const first = new RightEdge();
        for (const entry of entries.slice(0, cut)) first.append(entry);
        const second = new RightEdge(first.facts);
        for (const entry of entries.slice(cut)) second.append(entry);
        expect(hex(second.root())).toBe(hex(rootOf(entries.map(hashLeaf))));
        expect(hex(once.root())).toBe(hex(second.root()));
        const names = (edge: RightEdge) =>
          edge
            .files()
            .filter(({ partial }) => partial)
            .map(({ path }) => path);
        expect(names(second)).toEqual(names(once));
        expect(names(once).toSorted()).toEqual(partialTiles(count).map(tilePath).toSorted());
      }),
      { numRuns: Math.ceil(Math.min(numRuns, 2_000) / 4) },
    );
  });
});

describe('C9 proofs of the audit log', () => {
  const sizes = fc
    .integer({ min: 1, max: 300 })
    .chain((size) => fc.record({ size: fc.constant(size), at: fc.integer({ min: 0, max: size - 1 }) }));

  it('inclusion holds for its leaf, place and root only', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, async ({ size, at }) => {
        const hashes = entriesOf(size).map(hashLeaf);
        const [leaf, root] = [hashes[at] as Hash, rootOf(hashes)];
        const tree = { size, root };
        const proof = await proveInclusion(at, size, readerOf(hashes));
        expect(verifyInclusion({ index: at, leaf, proof }, tree)).toBe(true);
        expect(verifyInclusion({ index: at, leaf: hashLeaf(leaf), proof }, tree)).toBe(false);
        expect(verifyInclusion({ index: at, leaf, proof: [...proof, leaf] }, tree)).toBe(false);
        expect(verifyInclusion({ index: at, leaf, proof: proof.slice(1) }, tree)).toBe(size === 1);
        if (size > 1) expect(verifyInclusion({ index: (at + 1) % size, leaf, proof }, tree)).toBe(false);
        expect(verifyInclusion({ index: at, leaf, proof }, { size, root: leaf })).toBe(size === 1);
      }),
      { numRuns: Math.min(numRuns, 2_000) },
    );
  });

  it('consistency holds between two sizes of one log only', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, async ({ size, at: before }) => {
        const hashes = entriesOf(size).map(hashLeaf);
        const [oldRoot, root] = [rootOf(hashes, 0, before), rootOf(hashes)];
        const [old, tree] = [
          { size: before, root: oldRoot },
          { size, root },
        ];
        const proof = await proveConsistency(before, size, readerOf(hashes));
        expect(verifyConsistency(old, tree, proof)).toBe(true);
        expect(verifyConsistency({ size: before, root: hashLeaf(oldRoot) }, tree, proof)).toBe(false);
        expect(verifyConsistency(old, tree, [...proof, root])).toBe(false);
        if (before > 0) expect(verifyConsistency(old, { size, root: hashLeaf(root) }, proof)).toBe(false);
        expect(verifyConsistency(tree, old, proof)).toBe(false);
      }),
      { numRuns: Math.min(numRuns, 2_000) },
    );
  });

  it('RFC 6962 §2.1.3: the proofs of the example of seven leaves', async () => {
    const hashes = entriesOf(7).map(hashLeaf);
    const read = readerOf(hashes);
    const range = (from: number, to: number) => hashRange(from, to, read);
    const d = (at: number) => hashes[at] as Hash;
    expect(await proveInclusion(0, 7, read)).toEqual([d(1), await range(2, 4), await range(4, 7)]);
    expect(await proveInclusion(3, 7, read)).toEqual([d(2), await range(0, 2), await range(4, 7)]);
    expect(await proveInclusion(4, 7, read)).toEqual([d(5), d(6), await range(0, 4)]);
    expect(await proveInclusion(6, 7, read)).toEqual([await range(4, 6), await range(0, 4)]);
    expect(await proveConsistency(3, 7, read)).toEqual([d(2), d(3), await range(0, 2), await range(4, 7)]);
    expect(await proveConsistency(4, 7, read)).toEqual([await range(4, 7)]);
    expect(await proveConsistency(6, 7, read)).toEqual([await range(4, 6), d(6), await range(0, 4)]);
  });

  it('sizes beyond 32 bits are counted right', () => {
    const [leaf, sibling] = [hashLeaf(new Uint8Array(1)), hashLeaf(new Uint8Array(2))];
    // The last leaf of 2^33 + 1 has one sibling: the root of all others.
    const root = sha256(Uint8Array.of(1), sibling, leaf);
    const tree = { size: 2 ** 33 + 1, root };
    expect(verifyInclusion({ index: 2 ** 33, leaf, proof: [sibling] }, tree)).toBe(true);
    expect(verifyInclusion({ index: 0, leaf, proof: [sibling] }, tree)).toBe(false);
    expect(verifyConsistency({ size: 2 ** 33, root: sibling }, tree, [leaf])).toBe(true);
    expect(verifyInclusion({ index: 0, leaf, proof: [] }, { size: 2 ** 53, root: leaf })).toBe(false);
  });
});

describe('C9 a log walked from its beginning', () => {
  function expectSameFiles(count: number): void {
    const seen = new Map<string, string>();
    const walk = new TreeWalk((tile, hashes) => void seen.set(tilePath(tile), hex(Buffer.concat(hashes))));
    const edge = new RightEdge();
    for (let at = 0; at < count; at += 1) {
      const entry = Uint8Array.of(at >> 16, at >> 8, at);
      edge.append(entry);
      walk.add(hashLeaf(entry));
    }
    walk.end();
    expect(hex(walk.root())).toBe(hex(edge.root()));
    const files = edge.files().filter(({ path }) => !path.includes('entries'));
    expect([...seen].sort()).toEqual(files.map(({ path, bytes }) => [path, hex(bytes)]).sort());
  }

  it('gives tiles and root of a log at any size', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 600 }), expectSameFiles), { numRuns: 12 });
  });

  it.each([255, 256, 257, 512, 65_536, 65_793])('gives tiles and root of a log of %i entries', expectSameFiles);
});
