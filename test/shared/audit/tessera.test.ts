// Reproduces a log of Tessera, byte for byte.
import { describe, expect, it } from 'vitest';
import { RightEdge } from '../../../functions/audit/log/right-edge.ts';
import { openCheckpoint, readCheckpoint, signCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { openNote, openSigningKey, openVerifier } from '../../../shared/audit/note.ts';
import { formatVerifierKey, openNoteKey, readNoteKey } from '../../../shared/audit/note-key.ts';
import { verifyConsistency } from '../../../shared/audit/proof.ts';
import { fromBase64 } from '../../../shared/base64.ts';
import notes from '../../vectors/audit/notes.json' with { type: 'json' };
import tessera from '../../vectors/audit/tessera-log.json' with { type: 'json' };

const bytes = (text: string) => new TextEncoder().encode(text);
const ORIGIN = 'example.com/log/testdata';

describe('C9 Tessera’s published log', () => {
  it('checkpoints, tiles and bundles of every size are the same bytes', async () => {
    const seed = (fromBase64(tessera.skey.split('+').slice(4).join('+')) as Uint8Array).slice(1);
    const { publicKey, signer } = await openSigningKey(seed);
    expect(formatVerifierKey(ORIGIN, publicKey)).toBe(tessera.vkey);
    const verifier = await openVerifier(ORIGIN, publicKey);
    const edge = new RightEdge();
    const files = new Map<string, string>();
    for (const [size, note] of tessera.checkpoints.entries()) {
      const entry = tessera.entries[size - 1];
      if (entry !== undefined) edge.append(bytes(entry));
      const checkpoint = { origin: ORIGIN, size, root: edge.root() };
      expect(await signCheckpoint(checkpoint, signer(ORIGIN))).toBe(note);
      expect(await openCheckpoint(bytes(note), verifier)).toEqual(checkpoint);
      for (const file of edge.files()) files.set(file.path, Buffer.from(file.bytes).toString('hex'));
    }
    expect(tessera.checkpoints).toHaveLength(16);
    for (const [path, hex] of Object.entries(tessera.tiles)) expect(files.get(path), path).toBe(hex);
  });
});

describe('C9 the log of the tests of transparency-dev’s witness', () => {
  it('has grown from five entries to eight', async () => {
    const { vkey, before, after, proof } = notes.growth;
    const key = readNoteKey(vkey);
    const verifier = key && (await openNoteKey(key));
    const heads = await Promise.all(
      [before, after].map(async (note) => {
        const opened = verifier && (await openNote(bytes(note), [verifier]));
        return opened && readCheckpoint(opened.text);
      }),
    );
    const [old, now] = heads;
    if (!old || !now) throw new Error('the checkpoints are not read');
    const hashes = proof.map((hash) => Uint8Array.from(Buffer.from(hash, 'hex')));
    expect(verifyConsistency(old, now, hashes)).toBe(true);
    expect(verifyConsistency(old, now, hashes.toReversed())).toBe(false);
  });
});
