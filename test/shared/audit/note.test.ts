import { describe, expect, it } from 'vitest';
import { formatCheckpoint, openCheckpoint, readCheckpoint, signCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { openNote, openSigningKey, openVerifier, signNote } from '../../../shared/audit/note.ts';
import { formatVerifierKey, readVerifierKey } from '../../../shared/audit/note-key.ts';
import { hashLeaf } from '../../../shared/audit/tree.ts';
import { fromBase64 } from '../../../shared/base64.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

// The example of golang.org/x/mod/sumdb/note: signatures by Ed25519 are the same wherever they are made.
const skey = 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz';
const vkey = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const signed = `${text}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n`;

const peter = async () => {
  const key = await openSigningKey((fromBase64(skey.split('+').slice(4).join('+')) as Uint8Array).slice(1));
  return { ...key, verifier: await openVerifier('PeterNeumann', key.publicKey) };
};

describe('C9 signed notes', () => {
  it('the example of golang.org/x/mod is signed byte for byte, and opened', async () => {
    const { publicKey, signer, verifier } = await peter();
    expect(formatVerifierKey('PeterNeumann', publicKey)).toBe(vkey);
    expect(await signNote(text, [signer('PeterNeumann')])).toBe(signed);
    expect(await openNote(bytes(signed), [verifier])).toMatchObject({ text, signers: ['PeterNeumann'] });
  });

  it('C2SP signed-note: the key of the example is read', () => {
    const key = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';
    const read = readVerifierKey(key);
    expect(read?.name).toBe('example.com/foo');
    expect(read && formatVerifierKey(read.name, read.publicKey)).toBe(key);
    expect(readVerifierKey(key.replace('530d903a', '530d903b'))).toBeUndefined();
    expect(readVerifierKey(key.replace('foo', 'bar'))).toBeUndefined();
  });

  it('keeps unknown signatures; a wrong one of a known key invalidates the note', async () => {
    const { verifier } = await peter();
    const other = (await openSigningKey(new Uint8Array(32).fill(7))).signer('other');
    const both = signed + (await signNote(text, [other])).slice(text.length + 1);
    expect((await openNote(bytes(both), [verifier]))?.signers).toEqual(['PeterNeumann']);
    const otherOnly = await signNote(text, [other]);
    expect(await openNote(bytes(otherOnly), [verifier])).toBeUndefined();
    // The same key id, and another signature.
    const forged = signed.replace('/ZJkuBS9', '/ZJkuBS8');
    expect(await openNote(bytes(forged), [verifier])).toBeUndefined();
    expect(await openNote(bytes(forged + both.slice(signed.length)), [verifier])).toBeUndefined();
  });

  it.each([
    ['another text', signed.replace('cryptography', 'Cryptography')],
    ['no empty line', signed.replace('\n\n', '\n')],
    ['no line break at the end', signed.slice(0, -1)],
    ['a control character', signed.replace('think', 'th\tnk')],
    ['base64 with a loose end', signed.replace('JnAM=', 'JnAN=')],
    ['base64 without its end', signed.replace('JnAM=', 'JnAM')],
    ['a hyphen for a dash', signed.replace('— ', '- ')],
    ['text after the signatures', `${signed}text\n`],
    ['101 signatures', `${text}\n${signed.slice(text.length + 1).repeat(101)}`],
    ['nothing', ''],
  ])('%s: no note', async (_, note) => {
    expect(await openNote(bytes(note), [(await peter()).verifier])).toBeUndefined();
  });

  it('bytes that are no UTF-8: no note', async () => {
    const broken = bytes(signed);
    broken[3] = 0xff;
    expect(await openNote(broken, [(await peter()).verifier])).toBeUndefined();
  });
});

describe('C9 checkpoints', () => {
  const root = hashLeaf(bytes('one'));

  it('are signed by the key of their log, deterministically', async () => {
    const { signer, publicKey } = await peter();
    const checkpoint = { origin: 'audit.example/eu/2026', size: 1, root };
    const note = await signCheckpoint(checkpoint, signer(checkpoint.origin));
    expect(await signCheckpoint(checkpoint, signer(checkpoint.origin))).toBe(note);
    expect(note.startsWith(formatCheckpoint(checkpoint))).toBe(true);
    expect(await openCheckpoint(bytes(note), await openVerifier(checkpoint.origin, publicKey))).toEqual(checkpoint);
    expect(await openCheckpoint(bytes(note), await openVerifier('audit.example/us/2026', publicKey))).toBeUndefined();
    // A key that signs for another origin than its own name.
    const misled = await signCheckpoint(checkpoint, signer('audit.example/us/2026'));
    expect(await openCheckpoint(bytes(misled), await openVerifier('audit.example/us/2026', publicKey))).toBeUndefined();
  });

  it('C2SP tlog-checkpoint: extension lines are allowed, everything else is not', () => {
    const text = formatCheckpoint({ origin: 'o', size: 5, root });
    expect(readCheckpoint(`${text}more\n`)?.size).toBe(5);
    const wrong = ['', 'o\n5\n', text.slice(0, -1), text.replace('5', '05'), text.replace('5', '-5'), `${text}\n`];
    const size = [text.replace('5', '9007199254740992'), text.replace('\n5', '\n5.0'), text.replace('=\n', '\n')];
    for (const one of [...wrong, ...size, `\n${text}`]) expect(readCheckpoint(one), one).toBeUndefined();
  });
});
