import { createHash, createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { receive } from '../../../functions/audit/intake/intake.ts';
import { checkDisclosure, commit, disclose, fromBase64Url, readDisclosure } from '../../../shared/audit/commitment.ts';
import { draftLeaf, reportedEvent } from '../../../shared/audit/leaf.ts';

/** RFC 9901 §4.2.1 to §4.2.3: what a disclosure is written as, and its digest. */
const vectors = [
  {
    disclosure: 'WyJfMjZiYzRMVC1hYzZxMktJNmNCVzVlcyIsICJmYW1pbHlfbmFtZSIsICJNw7ZiaXVzIl0',
    digest: 'X9yH0Ajrdm1Oij4tWso9UzzKJvPoDxwmuEcO3XAdRC0',
    name: 'family_name',
    value: 'Möbius',
  },
  // §5.1: of the example of an issued SD-JWT.
  {
    disclosure: 'WyIyR0xDNDJzS1F2ZUNmR2ZyeU5STjl3IiwgImdpdmVuX25hbWUiLCAiSm9obiJd',
    digest: 'jsu9yVulwQQlhFlM_3JlzMaSFzglhQG0DpfayQwLUK4',
    name: 'given_name',
    value: 'John',
  },
];
const recordKey = new Uint8Array(32).fill(3);
const event = (more: object = {}) => ({
  v: 1,
  id: '017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
  type: 'inference.complete',
  at: 1,
  producer: 'edge',
  tenant: 'dev',
  action: 'transcribe',
  status: 200,
  ...more,
});
const draftOf = (more: object = {}) => draftLeaf(reportedEvent.parse(event(more)), 1, () => recordKey);

describe('C12 commitments are those of SD-JWT', () => {
  it.each(vectors)('RFC 9901: the digest of $name', ({ disclosure, digest, name, value }) => {
    expect(commit(disclosure)).toBe(digest);
    expect(readDisclosure(disclosure)).toEqual({ name, value });
    expect(checkDisclosure(disclosure, { [name]: digest })).toEqual({ name, value });
  });

  it('RFC 9901 §4.2.1: other spaces or escapes make another disclosure', () => {
    const [{ disclosure, digest, value }] = vectors as [(typeof vectors)[0]];
    const salt = '_26bc4LT-ac6q2KI6cBW5es';
    const others = [JSON.stringify([salt, 'family_name', value]), `["${salt}", "family_name", "M\\u00f6bius"]`].map(
      (text) => Buffer.from(text).toString('base64url'),
    );
    for (const other of others) {
      expect(readDisclosure(other)).toEqual({ name: 'family_name', value });
      expect(checkDisclosure(other, { family_name: digest })).toBeUndefined();
    }
    expect(checkDisclosure(disclosure, { family_name: digest })).toBeDefined();
  });

  it('a salt is HMAC(record key, name), first 16 bytes', async () => {
    const made = await disclose(recordKey, { subject: 'c1:ann', audioSeconds: 1.5, nothing: null });
    for (const [name, value] of Object.entries({ subject: 'c1:ann', audioSeconds: 1.5, nothing: null })) {
      const salt = createHmac('sha256', recordKey).update(name).digest().subarray(0, 16).toString('base64url');
      const text = made[name] as string;
      expect(Buffer.from(text, 'base64url').toString()).toBe(JSON.stringify([salt, name, value]));
      expect(commit(text)).toBe(createHash('sha256').update(text, 'ascii').digest('base64url'));
    }
  });

  it('discloses one field alone, or all with key and values', async () => {
    const { draft, disclosures } = await draftOf({ subject: 'c1:ann', audioSeconds: 1.5, bytes: 60_000 });
    const sd = draft.sd ?? {};
    const { audioSeconds = '' } = disclosures ?? {};
    expect(checkDisclosure(audioSeconds, sd)).toEqual({ name: 'audioSeconds', value: 1.5 });
    // Disclosed salts are independent of each other.
    const salts = Object.values(disclosures ?? {}).map((text) => JSON.parse(String(Buffer.from(text, 'base64url')))[0]);
    expect(new Set(salts).size).toBe(salts.length);
    const again = await disclose(recordKey, { bytes: 60_000, subject: 'c1:ann', audioSeconds: 1.5 });
    expect(Object.fromEntries(Object.entries(again).map(([name, text]) => [name, commit(text)]))).toEqual(sd);
    const wrong = await disclose(new Uint8Array(32), { subject: 'c1:ann' });
    expect(checkDisclosure(wrong.subject as string, sd)).toBeUndefined();
  });

  it('an invalid disclosure reveals nothing', () => {
    const write = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const wrong = [
      ['salt', 'name'],
      ['salt', 'name', 1, 2],
      [1, 'name', 2],
      { 0: 'a', 1: 'b', 2: 'c', length: 3 },
      null,
    ];
    for (const text of ['', '!', 'AA==', ...wrong.map(write)]) expect(readDisclosure(text), text).toBeUndefined();
    expect(fromBase64Url('AB==')).toBeUndefined();
    expect(checkDisclosure(write(['s', 'toString', 1]), {})).toBeUndefined();
  });
});

describe('C12 names that nothing can be hidden under', () => {
  it.each(['_sd', '...'])('RFC 9901 §4.2.1: %s', async (name) => {
    const text = Buffer.from(JSON.stringify(['salt', name, 1])).toString('base64url');
    expect(readDisclosure(text)).toBeUndefined();
    expect(checkDisclosure(text, { [name]: commit(text) })).toBeUndefined();
    await expect(disclose(recordKey, { [name]: 1 })).rejects.toThrow(TypeError);
    const rows = [{ to: 1, t: 1, events: [event({ [name]: 1 })] }];
    const delivery = { v: 1 as const, producer: 'gate/dev/eu', epoch: crypto.randomUUID(), oldest: 1, rows };
    const received = await receive(delivery, 1, async () => '');
    expect(received?.drafts).toMatchObject([{ type: 'event.unreadable' }]);
  });
});

describe('C12 absent members', () => {
  it('a missing subject is hidden, and its absence can be proved', async () => {
    const [one, other] = [await draftOf({ subject: 'c1:ann' }), await draftOf()];
    expect(Object.keys(other.draft.sd ?? {})).toEqual(Object.keys(one.draft.sd ?? {}));
    expect(other.draft.sd?.subject).toHaveLength(one.draft.sd?.subject?.length ?? 0);
    const shown = checkDisclosure(other.disclosures?.subject ?? '', other.draft.sd ?? {});
    expect(shown).toEqual({ name: 'subject', value: null });
    const denied = await draftOf({ type: 'inference.denied', reason: 'scope_missing' });
    expect(Object.keys(denied.draft.sd ?? {})).toEqual(expect.arrayContaining(['subject', 'detail']));
  });
});
