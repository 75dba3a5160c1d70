import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { auditEventOf } from '../../../shared/audit/derived/fhir.ts';
import { auditEvent } from '../../../shared/audit/event.ts';

const AT = Date.UTC(2026, 5, 1, 12, 0, 10);
const ID = '0197a3b0-7c3f-7f1e-8f0e-5a5f0f5b0f11';

const eventOf = (type: string, index = 7, members: object = {}, shown: Record<string, unknown> = {}) =>
  auditEventOf(
    {
      ...{ index, leafHash: 'ab', shown },
      leaf: { id: ID, type, p: 'gate/acme/eu', t: { origin: AT, edge: AT, seq: AT + 900 }, ...members },
    },
    { origin: 'audit.example/eu/2026', note: '' },
  );

// hl7.org/fhir/R4/auditevent.html and datatypes.html: names, cardinalities and values of fixed sets, with nothing beside.
const instant = z.iso.datetime({ precision: 3 });
const coding = z.strictObject({
  system: z.url(),
  code: z.string().regex(/^\S+( \S+)*$/),
  display: z.string().min(1).optional(),
});
const concept = z
  .strictObject({ coding: z.array(coding).min(1).optional(), text: z.string().min(1).optional() })
  .refine(({ coding: one, text }) => one ?? text);
const reference = z
  .strictObject({
    identifier: z.strictObject({ system: z.url(), value: z.string().min(1) }).optional(),
    display: z.string().min(1).optional(),
  })
  .refine(({ identifier, display }) => identifier ?? display);
const extension: z.ZodType = z.strictObject({
  url: z.string().min(1),
  valueString: z.string().min(1).optional(),
  extension: z
    .array(z.lazy(() => extension))
    .min(1)
    .optional(),
});
const r4 = z.strictObject({
  resourceType: z.literal('AuditEvent'),
  id: z.string().regex(/^[A-Za-z0-9.-]{1,64}$/),
  extension: z.array(extension).min(1),
  type: coding,
  subtype: z.array(coding).min(1),
  action: z.enum(['C', 'R', 'U', 'D', 'E']),
  period: z
    .strictObject({ start: instant, end: instant.optional() })
    .refine(({ start, end }) => end === undefined || start <= end),
  recorded: instant,
  outcome: z.enum(['0', '4', '8', '12']).optional(),
  outcomeDesc: z.string().min(1).optional(),
  purposeOfEvent: z.array(concept).min(1).optional(),
  agent: z.array(z.strictObject({ type: concept, who: reference, requestor: z.boolean() })).min(1),
  source: z.strictObject({ observer: reference }),
  entity: z
    .array(z.strictObject({ what: reference, type: coding, role: coding.optional() }))
    .min(1)
    .optional(),
});
const typesOf = auditEvent.options.map(({ shape }) => [...shape.type.values][0] as string);

describe('A21 C12 FHIR R4 AuditEvent', () => {
  it.each([...typesOf, 'shard.open', 'of.tomorrow'])(
    '%s has what R4 requires, no empty member and nothing beside',
    (type) => {
      const request = { req: '01JX', tn: 'acme' };
      const members = { status: 200, milliseconds: 120, since: AT - 5_000, purpose: 'a case', reason: 'asked' };
      for (const event of [
        eventOf(type),
        eventOf(type, 2 ** 40, { ...request, ...members }, { subject: 'c1:ab', model: 'asr' }),
        eventOf(type, 7, { status: 'x', milliseconds: -5, since: AT + 5_000, reason: '', purpose: '' }),
      ]) {
        expect(r4.safeParse(JSON.parse(JSON.stringify(event))).error?.issues).toBeUndefined();
      }
    },
  );

  it('only calls are RESTful operations; log indexes are exact at any size', () => {
    const codeOf = (type: string) => (eventOf(type).type as { code: string }).code;
    expect(['inference.complete', 'token.granted'].map(codeOf)).toEqual(['rest', 'rest']);
    expect(['export.create', 'export.read', 'access.audit'].map(codeOf)).toEqual(['110106', '110106', '110101']);
    for (const type of ['hold.set', 'erasure.exec', 'shard.open', 'producer.close'])
      expect(codeOf(type)).toBe('110100');
    for (const type of ['keys', 'policy.change', 'model.stage']) expect(codeOf(type)).toBe('110113');
    const far = JSON.stringify(eventOf('route', 2 ** 40));
    expect(far).toContain(`"valueString":"${2 ** 40}"`);
  });

  it.each<[string, object, string | undefined]>([
    ['inference.attempt', {}, undefined],
    ['inference.complete', { status: 200 }, '0'],
    ['inference.complete', { status: 499 }, '4'],
    ['inference.complete', { status: 503 }, '8'],
    ['inference.complete', { status: 0 }, '8'],
    ['inference.denied', {}, '4'],
    ['inference.unknown', {}, '8'],
    ['gap', {}, '8'],
    ['producer.gap', {}, '8'],
    ['keys', { action: 'refused' }, '4'],
    ['keys', { action: 'attested' }, '0'],
    ['erasure.exec', { outcome: 'deferred', waits: 'hold' }, '4'],
    ['erasure.exec', { outcome: 'done' }, '0'],
    ['model.stage', { verdict: 'FAIL' }, '4'],
    ['model.stage', { verdict: 'PASS' }, '0'],
  ])('%s %j has the outcome %s', (type, members, outcome) => {
    expect(eventOf(type, 7, members).outcome).toBe(outcome);
  });

  it('the period ends at the leaf’s time and has its duration', () => {
    const iso = (ms: number) => new Date(ms).toISOString();
    expect(eventOf('inference.complete', 7, { milliseconds: 4_000 })).toMatchObject({
      period: { start: iso(AT - 4_000), end: iso(AT) },
      recorded: iso(AT + 900),
    });
    expect(eventOf('access.audit', 7, { since: AT - 60_000 }).period).toEqual({
      start: iso(AT - 60_000),
      end: iso(AT),
    });
    expect(eventOf('route').period).toEqual({ start: iso(AT), end: iso(AT) });
    expect(eventOf('inference.attempt').period).toEqual({ start: iso(AT) });
  });

  it('BALP: readers are destinations, other clients sources; writers are authors', () => {
    const rolesOf = (type: string) =>
      (eventOf(type, 7, { tn: 'acme' }, { subject: 'c1:ab' }).agent as { type: { coding: { code: string }[] } }[]).map(
        (one) => one.type.coding[0]?.code,
      );
    expect(rolesOf('inference.complete')).toEqual(['110152', '110153', 'IRCP']);
    expect(rolesOf('export.read')).toEqual(['110153', '110152', 'IRCP']);
    expect(rolesOf('export.create')).toEqual(['110152', '110153', 'AUT']);
  });
});
