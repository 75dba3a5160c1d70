import { describe, expect, it } from 'vitest';
import { type AuditEvent, auditEvent } from '../../../shared/audit/event.ts';
import { draftLeaf, reportedEvent } from '../../../shared/audit/leaf.ts';
import { isPlain, listedTypes } from '../../../shared/audit/plain-members.ts';

const members = new Map(auditEvent.options.map(({ shape }) => [shape.type.value as string, Object.keys(shape)]));
const origin = { v: 1, id: '017f22e2-79b0-7cc3-98c4-dc0c0c07398f', at: 1_000, producer: 'functions' } as const;
const recordKey = new Uint8Array(32).fill(3);

/** Members that identify a person or quote a person's text. */
const NEVER_PLAIN = ['subject', 'purpose', 'query', 'held', 'detail', 'bytes', 'milliseconds', 'audioSeconds'];

describe('C12 A21 types of events', () => {
  it('plain members exist, and exclude persons and purposes', () => {
    for (const type of listedTypes) expect(members.has(type), type).toBe(true);
    for (const [type, names] of members) {
      for (const name of NEVER_PLAIN) expect(isPlain(type, name), `${type} ${name}`).toBe(false);
      if (listedTypes.includes(type))
        expect(
          names.some((name) => isPlain(type, name)),
          type,
        ).toBe(true);
    }
    // The reason of a hold is a person's text; the reason of a refusal is a code.
    expect(isPlain('hold.set', 'reason')).toBe(false);
    expect(isPlain('inference.denied', 'reason')).toBe(true);
  });

  it('every type survives parsing; its leaf shows exactly the plain members', async () => {
    const asked: Record<string, AuditEvent> = {
      export: {
        ...origin,
        type: 'export.create',
        tenant: 't',
        export: 'e1',
        format: 'ndjson',
        redaction: 'min',
        purpose: 'Ann asked',
      },
      hold: {
        ...origin,
        type: 'hold.set',
        tenant: 't',
        hold: 'h1',
        scope: 'subject',
        held: 'Ann',
        reason: 'a lawsuit',
      },
      access: { ...origin, type: 'access.audit', tenant: 't', action: 'search', count: 3, since: 1, query: 'Ann' },
      erasure: { ...origin, type: 'erasure.exec', tenant: 't', outcome: 'done', count: 7, basis: 'gdpr-17' },
    };
    for (const [name, event] of Object.entries(asked)) {
      expect(auditEvent.parse(event), name).toEqual(event);
      const { draft } = await draftLeaf(reportedEvent.parse(event), 1_001, () => recordKey);
      expect(JSON.stringify(draft), name).not.toContain('Ann');
      const outside = ['v', 'id', 'at', 'producer', 'type', 'tenant', 'request'];
      const told = Object.keys(event).filter((member) => !outside.includes(member));
      expect(Object.keys(draft.sd ?? {}).sort(), name).toEqual(
        told.filter((member) => !isPlain(event.type, member)).sort(),
      );
      for (const member of told) if (isPlain(event.type, member)) expect(draft, name).toHaveProperty(member);
    }
  });

  it('a newer type has a leaf with the members common to all versions', async () => {
    const newer = { ...origin, type: 'inference.rated', tenant: 't', request: 'r', action: 'rate', stars: 5 };
    const { draft } = await draftLeaf(reportedEvent.parse(newer), 1_001, () => recordKey);
    expect(draft).toMatchObject({ type: 'inference.rated', tn: 't', req: 'r', action: 'rate' });
    expect(Object.keys(draft.sd ?? {})).toEqual(['stars']);
  });
});
