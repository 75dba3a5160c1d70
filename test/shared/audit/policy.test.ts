import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { signCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { cosigner } from '../../../shared/audit/cosignature.ts';
import { openJudge } from '../../../shared/audit/judge.ts';
import { openSigningKey, type Signer, signNote } from '../../../shared/audit/note.ts';
import { formatNoteKey } from '../../../shared/audit/note-key.ts';
import { formatPolicy, isQuorum, POLICY_BYTES, type Policy, readPolicy } from '../../../shared/audit/policy.ts';
import { proveInclusion } from '../../../shared/audit/proof.ts';
import { formatReceipt, type Receipt, readReceipt, verifyReceipt } from '../../../shared/audit/receipt.ts';
import { hashLeaf, rootOf } from '../../../shared/audit/tree.ts';

const numRuns = Math.min(2_000, Number(process.env.SEEDS ?? 200));
const bytes = (text: string) => new TextEncoder().encode(text);
const ORIGIN = 'audit.example/eu/2026';
const NOW = 1_790_000_000;

const keyOf = (seed: number) => openSigningKey(new Uint8Array(32).fill(seed));
const log = await keyOf(1);
const logKey = formatNoteKey({ type: 'ed25519', name: ORIGIN, publicKey: log.publicKey });
const witnesses = await Promise.all(
  ['X1', 'X2', 'X3', 'Y1', 'Y2', 'Y3'].map(async (name, at) => {
    const { publicKey, signer } = await keyOf(10 + at);
    const full = `witness.example/${name}`;
    const cosign = (seconds = NOW): Signer => cosigner(full, { publicKey, sign: signer(full).sign }, () => seconds);
    return { name, vkey: formatNoteKey({ type: 'cosignature', name: full, publicKey }), cosign };
  }),
);
const vkeyOf = (name: string) => witnesses.find((one) => one.name === name)?.vkey;

/** The example of the specification. */
const example = `log ${logKey}

witness X1 ${vkeyOf('X1')}
witness X2 ${vkeyOf('X2')}
witness X3 ${vkeyOf('X3')} https://witness.example/
group X-witnesses 2 X1 X2 X3

witness Y1 ${vkeyOf('Y1')}
witness Y2 ${vkeyOf('Y2')}
witness Y3 ${vkeyOf('Y3')}
group Y-witnesses any Y1 Y2 Y3

  # Both.
\tgroup X-and-Y  all\tX-witnesses Y-witnesses
quorum X-and-Y
`;
const read = (text: string): Policy => {
  const policy = readPolicy(bytes(text));
  if (!policy.ok) throw new Error(policy.refusal);
  return policy.value;
};

describe('C9 policies: trusted witnesses', () => {
  it('C2SP tlog-policy: the example parses, and prints unchanged', () => {
    const policy = read(example);
    const enough = (...names: string[]) => isQuorum(policy, new Set(names));
    expect(enough('X1', 'X3', 'Y2')).toBe(true);
    expect(enough('X1', 'X2', 'X3')).toBe(false);
    expect(enough('X1', 'Y1', 'Y2', 'Y3')).toBe(false);
    expect(enough()).toBe(false);
    expect(policy.witnesses[2]?.url).toBe('https://witness.example/');
    expect(readPolicy(formatPolicy(policy))).toEqual({ ok: true, value: policy });
    expect(isQuorum(read('quorum none'), new Set())).toBe(true);
  });

  it.each([
    ['no quorum', `witness X1 ${vkeyOf('X1')}\n`],
    ['two quorums', 'quorum none\nquorum none\n'],
    ['a quorum that is not defined yet', `quorum X1\nwitness X1 ${vkeyOf('X1')}\n`],
    ['a member that is not defined yet', `group G any X1\nwitness X1 ${vkeyOf('X1')}\nquorum G\n`],
    ['a member of two groups', `${example.replace('any Y1', 'any X1 Y1')}`],
    ['a group of nobody', 'group G any\nquorum none\n'],
    ['none as a member', 'group G any none\nquorum G\n'],
    ['none as a name', `witness none ${vkeyOf('X1')}\nquorum none\n`],
    ['more than there are', example.replace('2 X1', '4 X1')],
    ['fewer than one', example.replace('2 X1', '0 X1')],
    ['a number with a zero before it', example.replace('2 X1', '02 X1')],
    ['a name twice', `${example}witness X1 ${vkeyOf('X1')}\n`],
    ['a key twice under two names', `witness A ${vkeyOf('X1')}\nwitness B ${vkeyOf('X1')}\nquorum none\n`],
    ['a log twice', `log ${logKey}\n${example}`],
    ['a log with the key of a witness', `log ${vkeyOf('X1')}\nquorum none\n`],
    ['a witness with the key of a log', `witness X1 ${logKey}\nquorum none\n`],
    ['a key that is none', 'log example+00000000+AAAA\nquorum none\n'],
    ['too many words', `log ${logKey} url more\nquorum none\n`],
    ['another keyword', 'logs\nquorum none\n'],
    ['a carriage return', 'quorum none\r\n'],
    ['more than anybody needs', `#${'x'.repeat(POLICY_BYTES)}\nquorum none\n`],
  ])('%s: no policy', (_, text) => {
    expect(readPolicy(bytes(text)).ok).toBe(false);
  });

  it('names are octets, also without valid UTF-8', () => {
    const line = bytes(`witness ~1 ${vkeyOf('X1')}\nquorum ~1\n`);
    const odd = line.map((byte) => (byte === 0x7e ? 0xff : byte));
    const policy = readPolicy(odd);
    expect(policy.ok && policy.value.quorum).toBe('\u00ff1');
    expect(policy.ok && formatPolicy(policy.value)).toEqual(odd);
  });

  it('nested groups: a quorum counts from the leaves', () => {
    const shape = fc.record({
      needed: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 2 }),
      both: fc.integer({ min: 1, max: 2 }),
      seen: fc.subarray(witnesses.map(({ name }) => name)),
    });
    fc.assert(
      fc.property(shape, ({ needed: [x = 1, y = 1], both, seen }) => {
        const text = example.replace('2 X1', `${x} X1`).replace('any Y1', `${y} Y1`).replace('all\tX', `${both} X`);
        const count = (letter: string) => seen.filter((name) => name.startsWith(letter)).length;
        const groups = Number(count('X') >= x) + Number(count('Y') >= y);
        expect(isQuorum(read(text), new Set(seen))).toBe(groups >= both);
      }),
      { numRuns },
    );
  });
});

const entries = Array.from({ length: 11 }, (_, at) => bytes(`entry ${at}`));
const hashes = entries.map(hashLeaf);
const checkpoint = { origin: ORIGIN, size: entries.length, root: rootOf(hashes) };
const cosignedBy = async (...signers: Signer[]) => signCheckpoint(checkpoint, log.signer(ORIGIN), ...signers);
const by = (name: string, seconds?: number) => witnesses.find((one) => one.name === name)?.cosign(seconds) as Signer;

describe('C9 a checkpoint under a policy', () => {
  it('is the log’s, and witnessed when the quorum has seen it', async () => {
    const judge = await openJudge(read(example));
    const enough = await judge(bytes(await cosignedBy(by('X1'), by('X2', NOW - 5), by('Y3'))));
    expect(enough).toMatchObject({ checkpoint, quorum: true, logKeys: [{ type: 'ed25519' }] });
    expect(enough?.witnesses).toEqual([
      { name: 'X1', time: NOW },
      { name: 'X2', time: NOW - 5 },
      { name: 'Y3', time: NOW },
    ]);
    expect(await judge(bytes(await cosignedBy(by('X1'), by('X2'))))).toMatchObject({ quorum: false });
    expect(await judge(bytes(await cosignedBy()))).toMatchObject({ quorum: false, witnesses: [] });
  });

  it('ignores future cosignatures; a wrong one invalidates all', async () => {
    const judge = await openJudge(read(example));
    const note = await cosignedBy(by('X1'), by('X2', NOW + 1), by('Y3'));
    expect(await judge(bytes(note), NOW)).toMatchObject({ quorum: false });
    expect(await judge(bytes(note), NOW + 1)).toMatchObject({ quorum: true });
    const other = await signNote(`${ORIGIN}\n9\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n`, [by('Y1')]);
    const wrong = note + (other.split('\n\n')[1] ?? '');
    expect(await judge(bytes(wrong))).toBeUndefined();
  });

  it('rejects a lone witness, another log, and a log under another name', async () => {
    const judge = await openJudge(read(example));
    expect(await judge(bytes(await signCheckpoint(checkpoint, by('X1'), by('X2'), by('Y1'))))).toBeUndefined();
    const stranger = (await keyOf(2)).signer(ORIGIN);
    expect(await judge(bytes(await signCheckpoint(checkpoint, stranger)))).toBeUndefined();
    const misled = { ...checkpoint, origin: 'audit.example/us/2026' };
    expect(await judge(bytes(await signCheckpoint(misled, log.signer(ORIGIN))))).toBeUndefined();
  });
});

describe('C9 receipts', () => {
  const subtree = async (height: number, at: number) => rootOf(hashes, at * 2 ** height, (at + 1) * 2 ** height);
  const receiptOf = async (index: number): Promise<Receipt> => ({
    index,
    proof: await proveInclusion(index, entries.length, subtree),
    checkpoint: await cosignedBy(by('X1'), by('X2'), by('Y3')),
  });

  it('C2SP tlog-proof: every entry has a proof that verifies by policy', async () => {
    const judge = await openJudge(read(example));
    for (const [index, entry] of entries.entries()) {
      const written = formatReceipt(await receiptOf(index));
      expect(written.startsWith(`c2sp.org/tlog-proof@v1\nindex ${index}\n`)).toBe(true);
      const receipt = readReceipt(bytes(written)) as Receipt;
      expect(formatReceipt(receipt)).toBe(written);
      expect(await verifyReceipt(receipt, entry, judge)).toMatchObject({ quorum: true, checkpoint });
      const another = entries[(index + 1) % entries.length] as Uint8Array;
      expect(await verifyReceipt(receipt, another, judge)).toBeUndefined();
      expect(await verifyReceipt({ ...receipt, index: (index + 1) % 11 }, entry, judge)).toBeUndefined();
    }
  });

  it('carries anything along', async () => {
    const receipt = { ...(await receiptOf(3)), extra: Uint8Array.of(1, 2, 3) };
    expect(formatReceipt(receipt)).toContain('\nextra AQID\nindex 3\n');
    expect(readReceipt(bytes(formatReceipt(receipt)))).toEqual(receipt);
    const alone = { index: 0, proof: [], checkpoint: receipt.checkpoint };
    expect(readReceipt(bytes(formatReceipt(alone)))).toEqual(alone);
  });

  it('anything else is none', async () => {
    const written = formatReceipt(await receiptOf(3));
    const [first = '', second = '', third = ''] = written.split('\n');
    const wrong = {
      'another version': written.replace('@v1', '@v2'),
      'an index with a zero before it': written.replace('index 3', 'index 03'),
      'an index beyond what counts exactly': written.replace('index 3', 'index 9007199254740992'),
      'no index': written.replace(`${second}\n`, ''),
      'a hash that is cut off': written.replace(third, third.slice(4)),
      'loose base64': written.replace(third, third.replace('=', '')),
      'loose extra': written.replace(`${first}\n`, `${first}\nextra AB==\n`),
      'extra after the index': written.replace(`${second}\n`, `${second}\nextra AQID\n`),
      'no empty line': written.replace('\n\n', '\n'),
      'more hashes than a log can need': written.replace(third, Array(64).fill(third).join('\n')),
    };
    for (const [name, text] of Object.entries(wrong)) {
      const receipt = readReceipt(bytes(text));
      expect(receipt, name).toBeUndefined();
    }
    expect(readReceipt(Uint8Array.of(0xff))).toBeUndefined();
  });
});
