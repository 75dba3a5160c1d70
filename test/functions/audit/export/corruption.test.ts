// The corruption matrix: every fault of a bundle, or of a reader's knowledge of its log, and its verdict.
// Some faults need only the bundle; the others need the log's key, and the bundle is signed again.

import { beforeAll, describe, expect, it } from 'vitest';
import { exportName, type Manifest, manifestNoteText } from '../../../../shared/audit/bundle/manifest.ts';
import { fromBase64Url, toBase64Url } from '../../../../shared/audit/commitment.ts';
import { WITNESS_SKEW_MS } from '../../../../shared/audit/limits.ts';
import { openSigningKey, signNote } from '../../../../shared/audit/note.ts';
import { digestOf } from '../../../../shared/audit/verify/bundle-files.ts';
import type { VerifyOptions } from '../../../../shared/audit/verify/verify-bundle.ts';
import { verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { cosigned, ExportedLog, logKey, ORIGIN, readerOf, signedAgain } from './exported-log.ts';

type Files = Map<string, Uint8Array>;
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);

let log: ExportedLog;
let made: Files;
let other: Files;
/** A log of the same origin and key with another story. */
let fork: ExportedLog;

beforeAll(async () => {
  [log, fork] = [new ExportedLog({ witnessed: true }), new ExportedLog({ witnessed: true })];
  for (const one of [log, fork]) await one.write('ann', 60, (at) => ({ model: `=cmd ${at}` }));
  await log.write('bob', 40);
  await fork.write('bob', 40);
  for (const one of [log, fork]) await one.write('ann', 30);
  const witnessed = async (tenant: string): Promise<Files> => {
    const asked = await log.ask(tenant);
    await log.commit();
    await log.witness();
    return log.files(await log.finish(asked));
  };
  other = await witnessed('bob');
  made = await witnessed('ann');
});

const copy = (): Files => new Map([...made].map(([path, bytes]) => [path, bytes.slice()]));
const verdictOf = async (files: Files, asked: Partial<VerifyOptions> = {}) =>
  verifyBundle(readerOf(files), { now: log.now + 60_000, ...asked });

const linesIn = (files: Files, path = 'entries.ndjson'): string[] => decode(files.get(path)).trimEnd().split('\n');
const putLines = (files: Files, lines: readonly string[], path = 'entries.ndjson'): Files =>
  files.set(path, encode(lines.map((line) => `${line}\n`).join('')));

const flipped = (bytes: Uint8Array, at: number): Uint8Array => bytes.with(at, (bytes[at] as number) ^ 1) as Uint8Array;

describe('C9 corruption matrix: nothing is wrong', () => {
  it('the bundle of the job is valid, complete and witnessed', async () => {
    const report = await verdictOf(copy());
    expect(report).toMatchObject({ verdict: 'witnessed', exit: 0, findings: [] });
  });

  it('a shredded record still verifies, and is called erased', async () => {
    const erased = new ExportedLog();
    await erased.write('ann', 3);
    for (const name of await erased.store.list('sidecar', 'eu/keys/', 10)) await erased.store.remove('sidecar', name);
    for (const name of await erased.store.list('sidecar', 'eu/', 1_000)) {
      if (!/\/\d{16}-/.test(name)) await erased.store.remove('sidecar', name);
    }
    erased.keys.forget();
    const report = await verdictOf(await erased.export('ann'));
    expect(report).toMatchObject({ verdict: 'unwitnessed', facts: { erased: 3 } });
  });

  it('a formula in a value is text in the table', async () => {
    const table = decode(made.get('derived/events.csv'));
    expect(table).toContain(",'=cmd 7,");
    expect(table).not.toMatch(/(^|,)"?=cmd/m);
  });
});

describe('C9 corruption matrix: without any key', () => {
  it('one flipped bit in every file there is', async () => {
    for (const [path, bytes] of made) {
      for (const at of [0, bytes.length >> 1, bytes.length - 2]) {
        const files = copy().set(path, flipped(bytes, at));
        expect((await verdictOf(files)).verdict, `${path} at ${at}`).toBe('invalid');
      }
    }
  });

  it('one file less, whichever', async () => {
    for (const path of made.keys()) {
      const files = copy();
      files.delete(path);
      expect((await verdictOf(files)).verdict, path).toBe('invalid');
    }
  });

  it('an extra file among the derived ones', async () => {
    const report = await verdictOf(copy().set('derived/more.csv', encode('log\r\n')));
    expect(report).toMatchObject({ verdict: 'invalid', findings: [{ stage: 'files' }] });
  });

  it('an edited manifest; one signed by another key, or under another name', async () => {
    const edited = decode(made.get('manifest.json')).replace('yearly audit', 'yearly Audit');
    expect((await verdictOf(copy().set('manifest.json', encode(edited)))).verdict).toBe('invalid');
    const text = manifestNoteText(ORIGIN, await digestOf(made.get('manifest.json') as Uint8Array));
    const stranger = (await openSigningKey(new Uint8Array(32).fill(9))).signer(exportName(ORIGIN));
    for (const signer of [stranger, logKey.signer(ORIGIN)]) {
      const files = copy().set('manifest.note', encode(await signNote(text, [signer])));
      expect((await verdictOf(files)).findings).toMatchObject([{ stage: 'manifest', verdict: 'invalid' }]);
    }
  });

  it('the bundle of another tenant, or its entries', async () => {
    expect((await verdictOf(other, { tenant: 'ann' })).verdict).toBe('invalid');
    const files = copy().set('entries.ndjson', other.get('entries.ndjson') as Uint8Array);
    expect((await verdictOf(files)).verdict).toBe('invalid');
  });

  it('another log: a policy with another key, or another origin', async () => {
    const stranger = await openSigningKey(new Uint8Array(32).fill(9));
    const { formatVerifierKey } = await import('../../../../shared/audit/note-key.ts');
    const policyOf = (name: string, key: Uint8Array) => encode(`log ${formatVerifierKey(name, key)}\nquorum none\n`);
    for (const policy of [
      policyOf(ORIGIN, stranger.publicKey),
      policyOf('audit.example/us/2026', logKey.publicKey),
      encode('log nonsense\nquorum none\n'),
    ]) {
      expect((await verdictOf(copy(), { policy })).verdict).toBe('invalid');
    }
  });
});

describe('C9 corruption matrix: by a holder of the log’s key', () => {
  it.each([
    ['one entry', [7]],
    ['several entries in a row', [10, 11, 12, 13]],
    ['the first ones', [1, 2]],
  ])('without %s, and signed again', async (_, places) => {
    const files = copy();
    putLines(
      files,
      linesIn(files).filter((__, at) => !places.includes(at)),
    );
    const report = await verdictOf(await signedAgain(files));
    // The hashes of what is missing are not there, either.
    expect(report.verdict).toBe('invalid');
    expect(report.findings).toContainEqual(expect.objectContaining({ stage: 'inclusion' }));
  });

  it('entries left out, their hashes moved into the proofs: a gap in the numbers', async () => {
    const { hashLeaf } = await import('../../../../shared/audit/tree.ts');
    const files = copy();
    const lines = linesIn(files);
    // Entry 5 of the log alone: between two others, so one hash stands for it, and it comes before all that is there.
    const line = lines[5] as string;
    const leaf = hashLeaf(encode(line.slice(line.indexOf(',"leaf":') + 8, -1)));
    putLines(files, lines.toSpliced(5, 1));
    files.set('proofs/subtrees.bin', Buffer.concat([leaf, files.get('proofs/subtrees.bin') as Uint8Array]));
    const disclosures = linesIn(files, 'disclosures.ndjson').filter((one) => !one.startsWith('{"index":5,'));
    putLines(files, disclosures, 'disclosures.ndjson');
    const report = await verdictOf(
      await signedAgain(files, (manifest) => ({
        ...manifest,
        counts: { ...manifest.counts, entries: manifest.counts.entries - 1, disclosed: disclosures.length },
        parts: manifest.parts.map((part) => ({ ...part, derived: {} })),
        files: manifest.files.filter(({ path }) => !path.startsWith('derived/')),
      })).then((all) => new Map([...all].filter(([path]) => !path.startsWith('derived/')))),
    );
    expect(report.verdict).toBe('incomplete');
    expect(report.findings.map(({ text }) => text)).toEqual([
      'number 5 of the tenant is missing',
      expect.stringMatching(/^entry 6: events 5 to 5 of gate\/ann\/eu .* are nowhere in the log$/),
    ]);
  });

  it('a cut-off tail', async () => {
    const files = copy();
    putLines(files, linesIn(files).slice(0, -1));
    expect((await verdictOf(await signedAgain(files))).verdict).toBe('invalid');
  });

  it('entries in another order, or twice', async () => {
    const lines = linesIn(copy());
    for (const wrong of [
      lines.with(4, lines[5] as string).with(5, lines[4] as string),
      lines.toSpliced(5, 0, lines[5] as string),
    ]) {
      const report = await verdictOf(await signedAgain(putLines(copy(), wrong)));
      expect(report.verdict).toBe('invalid');
      expect(report.findings[0]).toMatchObject({ stage: 'inclusion', text: expect.stringContaining('comes after') });
    }
  });

  it('another value in an entry', async () => {
    const files = copy();
    const lines = linesIn(files);
    putLines(files, lines.with(9, (lines[9] as string).replace('"status":200', '"status":500')));
    expect((await verdictOf(await signedAgain(files))).verdict).toBe('invalid');
  });

  it('an entry of another tenant, with a place of ours', async () => {
    const files = copy();
    const theirs = linesIn(other)[1] as string;
    putLines(files, linesIn(files).toSpliced(61, 0, theirs));
    expect((await verdictOf(await signedAgain(files))).verdict).toBe('invalid');
  });

  it('an older checkpoint in place of the last one', async () => {
    const files = copy();
    const start = files.get('checkpoints/start.txt') as Uint8Array;
    const size = Number(decode(start).split('\n')[1]);
    files.set('checkpoints/end.txt', start);
    const report = await verdictOf(
      await signedAgain(files, (manifest) => ({ ...manifest, checkpoints: [{ path: 'checkpoints/end.txt', size }] })),
    );
    expect(report.verdict).toBe('invalid');
  });

  it('a first checkpoint of another story', async () => {
    const files = copy();
    const size = Number(decode(files.get('checkpoints/start.txt')).split('\n')[1]);
    const text = `${ORIGIN}\n${size}\n${Buffer.alloc(32, 3).toString('base64')}\n`;
    files.set('checkpoints/start.txt', encode(await signNote(text, [logKey.signer(ORIGIN)])));
    const report = await verdictOf(await signedAgain(files));
    expect(report.findings).toContainEqual(expect.objectContaining({ stage: 'consistency', verdict: 'invalid' }));
  });

  it('a flipped, missing, extra or swapped hash between the entries', async () => {
    const proofs = Uint8Array.from(made.get('proofs/subtrees.bin') as Uint8Array);
    expect(proofs.length).toBeGreaterThan(64);
    const swapped = Uint8Array.from([...proofs.subarray(32, 64), ...proofs.subarray(0, 32), ...proofs.subarray(64)]);
    const places = Array.from({ length: proofs.length / 32 }, (_, hash) => hash * 32 + (hash % 32));
    const changed = [
      ...places.map((at) => flipped(proofs, at)),
      ...[proofs.slice(32), proofs.slice(0, -32), proofs.slice(0, -1), new Uint8Array(0)],
      ...[Uint8Array.from([...proofs, ...proofs.subarray(0, 32)]), swapped],
    ];
    for (const [at, bytes] of changed.entries()) {
      const report = await verdictOf(await signedAgain(copy().set('proofs/subtrees.bin', bytes)));
      expect(report.verdict, `change ${at}`).toBe('invalid');
      const stages = report.findings.map(({ stage }) => stage);
      expect(
        stages.some((stage) => stage === 'inclusion' || stage === 'consistency'),
        `change ${at}: ${stages.join()}`,
      ).toBe(true);
    }
  });

  it('another first checkpoint: changed, cut, foreign signer, other log or other size', async () => {
    const start = made.get('checkpoints/start.txt') as Uint8Array;
    const [, size = '', root = ''] = decode(start).split('\n');
    const stranger = (await openSigningKey(new Uint8Array(32).fill(9))).signer(ORIGIN);
    const elsewhere = 'audit.example/us/2026';
    const signedBy = async (text: string, signer = logKey.signer(ORIGIN)) => encode(await signNote(text, [signer]));
    const changed = [
      ...Array.from(start.keys(), (at) => flipped(start, at)),
      ...[start.slice(0, -1), start.slice(1), new Uint8Array(0)],
      await signedBy(`${ORIGIN}\n${size}\n${root}\n`, stranger),
      await signedBy(`${elsewhere}\n${size}\n${root}\n`, logKey.signer(elsewhere)),
      await signedBy(`${ORIGIN}\n${Number(size) + 1}\n${root}\n`),
      made.get('checkpoints/end.txt') as Uint8Array,
    ];
    for (const [at, bytes] of changed.entries()) {
      const report = await verdictOf(await signedAgain(copy().set('checkpoints/start.txt', bytes)));
      expect(report.verdict, `change ${at}`).toBe('invalid');
      const told = expect.objectContaining({ stage: 'checkpoints', verdict: 'invalid' });
      expect(report.findings, `change ${at}`).toContainEqual(told);
    }
  });

  it('disclosures in another order say the same', async () => {
    const files = copy();
    putLines(files, linesIn(files, 'disclosures.ndjson').toReversed(), 'disclosures.ndjson');
    expect(await verdictOf(await signedAgain(files))).toMatchObject({ verdict: (await verdictOf(copy())).verdict });
  });

  it('a disclosure of another field, of another entry, against the profile, or none', async () => {
    const change = async (
      edit: (line: { index: number; sd: Record<string, string> }) => object,
      redaction?: string,
    ) => {
      const files = copy();
      const lines = linesIn(files, 'disclosures.ndjson');
      putLines(files, lines.with(3, JSON.stringify(edit(JSON.parse(lines[3] as string)))), 'disclosures.ndjson');
      const again = await signedAgain(files, (manifest) => ({ ...manifest, ...(redaction && { redaction }) }));
      return verdictOf(again);
    };
    const wrong = await change(({ index, sd }) => ({ index, sd: { bytes: sd.subject } }));
    expect(wrong.verdict).toBe('invalid');
    const strange = await change(({ index, sd }) => ({ index: index + 500, sd }));
    expect(strange.verdict).toBe('invalid');
    const forged = await change(({ index, sd }) => {
      const text = decode(fromBase64Url(sd.subject as string)).replace('ann', 'eve');
      return { index, sd: { ...sd, subject: toBase64Url(encode(text)) } };
    });
    expect(forged.findings).toContainEqual(expect.objectContaining({ stage: 'disclosures', verdict: 'invalid' }));
    expect((await change((same) => same, 'auditor-min')).verdict).toBe('invalid');
    const silent = await change(({ index }) => ({ index, sd: {} }));
    expect(silent.findings).toContainEqual(expect.objectContaining({ stage: 'disclosures', verdict: 'incomplete' }));
  });

  it('a derived file that says something else', async () => {
    for (const path of [...made.keys()].filter((one) => one.startsWith('derived/'))) {
      const files = copy();
      const bytes = files.get(path) as Uint8Array;
      files.set(path, flipped(bytes, bytes.length >> 1));
      const report = await verdictOf(await signedAgain(files));
      expect(report.findings, path).toMatchObject([{ stage: 'derived', verdict: 'invalid' }]);
    }
  });

  it('a manifest of a longer range, or with an anchor that is another leaf', async () => {
    const longer = await signedAgain(copy(), (manifest) => ({
      ...manifest,
      range: { ...manifest.range, tseq: [1, manifest.range.tseq[1] + 5] },
    }));
    const report = await verdictOf(longer);
    expect(report.findings).toContainEqual(expect.objectContaining({ stage: 'numbers', verdict: 'incomplete' }));
    const anchored = await signedAgain(copy(), (manifest) => ({
      ...manifest,
      anchor: { ...manifest.anchor, index: manifest.anchor.index - 1 },
    }));
    expect((await verdictOf(anchored)).verdict).toBe('invalid');
    const another = await signedAgain(copy(), (manifest) => ({ ...manifest, export_id: 'another' }));
    expect((await verdictOf(another)).verdict).toBe('invalid');
  });

  it.each([
    ['purpose', { purpose: 'another' }],
    ['request', { requested_by: 'another' }],
    ['time', { created: '2020-01-01T00:00:00.000Z' }],
  ])('a manifest with another %s than the leaf of the export', async (_, change) => {
    const report = await verdictOf(await signedAgain(copy(), (manifest) => ({ ...manifest, ...change })));
    expect(report.findings).toEqual([expect.objectContaining({ stage: 'numbers', verdict: 'invalid' })]);
  });

  it('paths that lead out of the bundle, or are written in two ways', async () => {
    for (const path of ['../entries.ndjson', 'a//b', '/etc/x', './entries.ndjson', 'proofs/..', 'proofs/.x']) {
      const files = await signedAgain(copy(), (manifest) => ({
        ...manifest,
        parts: manifest.parts.map((part) => ({ ...part, entries: path })),
      }));
      expect((await verdictOf(files)).findings, path).toMatchObject([{ stage: 'manifest', verdict: 'invalid' }]);
    }
  });

  it('sizes and places beyond exact numbers', async () => {
    for (const index of ['9007199254740993', '1e3', '07', '-1']) {
      const files = copy();
      const lines = linesIn(files);
      putLines(files, lines.with(5, (lines[5] as string).replace(/^\{"index":\d+/, `{"index":${index}`)));
      expect((await verdictOf(await signedAgain(files))).verdict, index).toBe('invalid');
    }
    const files = copy();
    const [, , root = ''] = decode(files.get('checkpoints/end.txt')).split('\n');
    const text = `${ORIGIN}\n${2 ** 53}\n${root}\n`;
    files.set('checkpoints/end.txt', encode(await signNote(text, [logKey.signer(ORIGIN)])));
    const changed = (manifest: Manifest): Manifest => ({
      ...manifest,
      checkpoints: [{ path: 'checkpoints/end.txt', size: 2 ** 53 }],
    });
    expect((await verdictOf(await signedAgain(files, changed))).verdict).toBe('invalid');
  });

  it('an entry that is longer than any can be', async () => {
    const files = copy();
    const lines = linesIn(files);
    const long = `"action":"${'a'.repeat(70_000)}"`;
    putLines(files, lines.with(5, (lines[5] as string).replace('"action":"transcribe"', long)));
    const report = await verdictOf(await signedAgain(files));
    expect(report.findings).toContainEqual(expect.objectContaining({ text: 'entry 5 is longer than an entry can be' }));
  });

  it('bytes that are no UTF-8', async () => {
    for (const path of ['entries.ndjson', 'disclosures.ndjson', 'checkpoints/end.txt']) {
      const files = copy();
      files.set(path, (files.get(path) as Uint8Array).with(40, 0xff));
      expect((await verdictOf(await signedAgain(files))).verdict, path).toBe('invalid');
    }
  });
});

describe('C9 corruption matrix: checkpoints as notes', () => {
  const noteOf = (): string => decode(made.get('checkpoints/end.txt'));
  const withNote = async (note: string) =>
    verdictOf(await signedAgain(copy().set('checkpoints/end.txt', encode(note))));

  it('more than 16 signatures are read, more than a hundred are not', async () => {
    const strange = (count: number) =>
      Array.from({ length: count }, (_, at) => `— stranger${at}.example ${Buffer.alloc(68, at).toString('base64')}\n`);
    expect((await withNote(noteOf() + strange(40).join(''))).verdict).toBe('invalid');
    // The note is in the fingerprints of OCSF, so a bundle with that note has to be made of it.
    const bare = async (note: string) => {
      const files = copy().set('checkpoints/end.txt', encode(note));
      for (const path of [...files.keys()]) if (path.startsWith('derived/')) files.delete(path);
      return verdictOf(
        await signedAgain(files, (manifest) => ({
          ...manifest,
          parts: manifest.parts.map((part) => ({ ...part, derived: {} })),
        })),
      );
    };
    expect((await bare(noteOf() + strange(40).join(''))).verdict).toBe('witnessed');
    expect((await bare(noteOf() + strange(100).join(''))).verdict).toBe('invalid');
  });

  it('a non-canonical signature, a wrong one of a known key, a future one', async () => {
    const [text = '', signatures = ''] = noteOf().split('\n\n');
    expect((await withNote(`${text}\n\n${signatures.replace(/(\S)=+\n/, '$1\n')}`)).verdict).toBe('invalid');
    const [log1 = '', witness = ''] = signatures.split('\n');
    const [name = '', base64 = ''] = witness.slice(2).split(' ');
    const broken = Buffer.from(base64, 'base64');
    broken[40] = (broken[40] as number) ^ 1;
    const wrong = `${text}\n\n${log1}\n— ${name} ${broken.toString('base64')}\n`;
    expect((await withNote(wrong)).verdict).toBe('invalid');
    const future = await cosigned(`${text}\n`, Math.floor((log.now + 60_000 + WITNESS_SKEW_MS) / 1_000) + 1);
    const files = copy().set('checkpoints/end.txt', encode(future));
    for (const path of [...files.keys()]) if (path.startsWith('derived/')) files.delete(path);
    const report = await verdictOf(
      await signedAgain(files, (manifest) => ({
        ...manifest,
        parts: manifest.parts.map((part) => ({ ...part, derived: {} })),
      })),
    );
    expect(report.verdict).toBe('unwitnessed');
  });

  it('a checkpoint without witness under a policy that requires one', async () => {
    const files = await log.export('ann', { formats: [] });
    expect((await verdictOf(files)).verdict).toBe('unwitnessed');
  });
});

describe('C9 corruption matrix: what the reader knows', () => {
  const headAt = async (size: number, root: Uint8Array) =>
    encode(await signNote(`${ORIGIN}\n${size}\n${Buffer.from(root).toString('base64')}\n`, [logKey.signer(ORIGIN)]));

  it('the same head, or an earlier one of the bundle, gives no finding', async () => {
    for (const path of ['checkpoints/end.txt', 'checkpoints/start.txt']) {
      expect((await verdictOf(copy(), { head: made.get(path) as Uint8Array })).verdict, path).toBe('witnessed');
    }
  });

  it('another root of the same size, and a fork before the end', async () => {
    const size = Number(decode(made.get('checkpoints/end.txt')).split('\n')[1]);
    const report = await verdictOf(copy(), { head: await headAt(size, new Uint8Array(32).fill(1)) });
    expect(report).toMatchObject({ verdict: 'diverged', exit: 30 });
    const forked = (await fork.store.read('log', 'eu/2026/checkpoints/61'))?.bytes;
    const asked = await log.ask('ann', { known_size: 61, formats: [] });
    await log.commit();
    await log.witness();
    const files = log.files(await log.finish(asked));
    expect((await verdictOf(files)).verdict).toBe('witnessed');
    expect((await verdictOf(files, { head: forked as Uint8Array })).verdict).toBe('diverged');
  });

  it('a head of another log', async () => {
    const head = encode(`audit.example/us/2026\n4\n${Buffer.alloc(32, 1).toString('base64')}\n`);
    expect((await verdictOf(copy(), { head })).verdict).toBe('diverged');
  });

  it('a head that cannot be compared is not passed over', async () => {
    const later = await headAt(1_000_000, new Uint8Array(32).fill(1));
    const report = await verdictOf(copy(), { head: later });
    expect(report).toMatchObject({
      verdict: 'incomplete',
      findings: [{ text: expect.stringContaining('known_size 1000000') }],
    });
  });
});
