import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../../shared/audit/canonical-json.ts';
import { checkDisclosure, commit } from '../../../shared/audit/commitment.ts';
import { ackName, delivery, openAck, signAck } from '../../../shared/audit/delivery.ts';
import type { AuditEvent } from '../../../shared/audit/event.ts';
import { draftLeaf, encodeLeaf, type Leaf, readLeaf, reportedEvent } from '../../../shared/audit/leaf.ts';
import { openSigningKey, openVerifier } from '../../../shared/audit/note.ts';

const event: AuditEvent = {
  v: 1,
  type: 'inference.complete',
  id: '017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
  at: 1_000,
  producer: 'edge',
  tenant: 'dev',
  request: 'r1',
  subject: 'c1:abc',
  action: 'transcribe',
  status: 200,
  audioSeconds: 1.875,
  model: 'reference-en',
};
const recordKey = new Uint8Array(32).fill(3);
const place = { p: 'gate/dev/eu', ep: '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11', pseq: 7 };

async function leafOf(reported: unknown): Promise<{ leaf: Leaf; disclosures: Record<string, string> }> {
  const { draft, disclosures } = await draftLeaf(reportedEvent.parse(reported), 1_001, () => recordKey);
  return {
    leaf: { ...draft, ...place, tseq: 1, t: { ...draft.t, seq: 1_002 } } as Leaf,
    disclosures: disclosures ?? {},
  };
}

describe('C9 canonical JSON', () => {
  it('RFC 8785 §3.2.2 and §3.2.3: the examples', () => {
    const numbers = [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001];
    const value = {
      numbers,
      string: "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\u0022/",
      literals: [null, true, false],
    };
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
    const names = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 };
    expect(Object.values(JSON.parse(canonicalJson(names)))).toEqual([4, 2, 6, 7, 1, 5, 3]);
    expect(() => canonicalJson({ at: Number.NaN })).toThrow(TypeError);
  });
});

describe('C12 a leaf shows no more than it must', () => {
  it('caller and amounts are commitments, which their disclosures open', async () => {
    const { leaf, disclosures } = await leafOf(event);
    const text = new TextDecoder().decode(encodeLeaf(leaf));
    expect(text).toContain('"model":"reference-en"');
    expect(text).not.toContain('c1:abc');
    expect(text).not.toContain('1.875');
    expect(Object.keys(leaf.sd ?? {}).sort()).toEqual(['audioSeconds', 'subject']);
    for (const [name, value] of [
      ['subject', 'c1:abc'],
      ['audioSeconds', 1.875],
    ] as const) {
      expect(checkDisclosure(disclosures[name] as string, leaf.sd ?? {})).toEqual({ name, value });
    }
  });

  it('a disclosure of another field, value or leaf opens nothing', async () => {
    const { leaf, disclosures } = await leafOf(event);
    const sd = leaf.sd ?? {};
    const { subject = '', audioSeconds = '' } = disclosures;
    expect(checkDisclosure(subject, { subject: sd.audioSeconds as string })).toBeUndefined();
    expect(checkDisclosure(`${subject}A`, sd)).toBeUndefined();
    expect(checkDisclosure(subject, {})).toBeUndefined();
    expect(checkDisclosure('', sd)).toBeUndefined();
    expect(commit(subject)).not.toBe(commit(audioSeconds));
  });

  it('hides unknown members and long texts', async () => {
    const { leaf } = await leafOf({ ...event, patient: 'Ann', reason: 'x'.repeat(300) });
    expect(Object.keys(leaf.sd ?? {}).sort()).toEqual(['audioSeconds', 'patient', 'reason', 'subject']);
    expect(new TextDecoder().decode(encodeLeaf(leaf))).not.toContain('Ann');
  });

  it('an entry is read only as it would have been written', async () => {
    const { leaf } = await leafOf(event);
    const entry = encodeLeaf(leaf);
    expect(readLeaf(entry)).toEqual(leaf);
    const text = new TextDecoder().decode(entry);
    for (const other of [
      ` ${text}`,
      text.replace('"v":1', '"v":1.0'),
      text.slice(1),
      '{}',
      text.replace(/,"v":1/, ''),
    ]) {
      expect(readLeaf(new TextEncoder().encode(other)), other).toBeUndefined();
    }
    expect(readLeaf(Uint8Array.of(0xff))).toBeUndefined();
  });
});

describe('C9 acknowledgements', () => {
  it('are accepted from the key of their log only', async () => {
    const { signer, publicKey } = await openSigningKey(new Uint8Array(32).fill(9));
    const ack = { origin: 'audit.example/eu/2026', producer: 'gate/dev/eu', epoch: place.ep, upTo: 12 };
    const name = ackName(ack.origin);
    const verifier = await openVerifier(name, publicKey);
    const note = await signAck(ack, signer(name));
    expect(await openAck(note, verifier)).toEqual(ack);
    expect(await openAck(note.replace('\n12\n', '\n13\n'), verifier)).toBeUndefined();
    const other = await openSigningKey(new Uint8Array(32).fill(8));
    expect(await openAck(note, await openVerifier(name, other.publicKey))).toBeUndefined();
    // A note under the log's own name, such as a checkpoint, acknowledges nothing.
    expect(await openAck(await signAck(ack, signer(ack.origin)), verifier)).toBeUndefined();
  });

  it('a delivery names its outbox', () => {
    const good = { v: 1, producer: 'gate/dev/eu', epoch: place.ep, oldest: 1, rows: [] };
    expect(delivery.safeParse(good).success).toBe(true);
    for (const producer of [
      'gate/dev',
      'gate//eu',
      'roster/',
      'gate/a/b/eu',
      'other/eu',
      'roster/EU',
      'gate/dev/eu\n',
      // Only the functions themselves may produce events under their name.
      'functions/eu',
    ]) {
      expect(delivery.safeParse({ ...good, producer }).success, producer).toBe(false);
    }
    for (const producer of ['roster/eu', 'gate/@anonymous/us']) {
      expect(delivery.safeParse({ ...good, producer }).success, producer).toBe(true);
    }
  });
});
