import { expect, it } from 'vitest';
import { auditEventOf } from '../../../shared/audit/derived/fhir.ts';

const eventOf = (type: string, index = 7) =>
  auditEventOf(
    { index, leafHash: 'ab', leaf: { id: 'x', type, t: { origin: 1, seq: 2 } }, shown: {} },
    { origin: 'audit.example/eu/2026', note: '' },
  );

it('A21 only calls are RESTful operations in FHIR; a place in the log is exact however long the log is', () => {
  const codeOf = (type: string) => (eventOf(type).type as { code: string }).code;
  expect(['inference.complete', 'token.granted'].map(codeOf)).toEqual(['rest', 'rest']);
  expect(['export.create', 'export.read', 'access.audit'].map(codeOf)).toEqual(['110106', '110106', '110101']);
  for (const type of ['hold.set', 'erasure.exec', 'shard.open', 'producer.close']) expect(codeOf(type)).toBe('110100');
  const far = JSON.stringify(eventOf('route', 2 ** 40));
  expect(far).toContain(`"valueString":"${2 ** 40}"`);
});
