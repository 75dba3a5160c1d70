// An entry as a FHIR R4 AuditEvent, by the patterns of IHE's Basic Audit Log Patterns (BALP 1.1): who did what for whom, with
// the request's id as a transaction. No patient is named, since the log knows none, so no profile is claimed. What FHIR has no member for is in an extension, its place in the log among it.
import { type DerivedContext, type DerivedEntry, isoTime, memberOf, timeOf } from './row.ts';

const DICOM = 'http://dicom.nema.org/resources/ontology/DCM';
const AUDIT_TYPE = 'http://terminology.hl7.org/CodeSystem/audit-event-type';
const BALP = 'https://profiles.ihe.net/ITI/BALP';
const ROLES = 'http://terminology.hl7.org/CodeSystem/v3-ParticipationType';

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** FHIR's codes: 0 done, 4 refused, 8 failed. */
function outcomeOf(type: string, status: unknown): string {
  if (type === 'inference.denied') return '4';
  if (typeof status !== 'number') return '0';
  if (status === 0 || status >= 500) return '8';
  return status >= 400 ? '4' : '0';
}

/** Create, read, update, delete, execute. */
const ACTIONS: readonly (readonly [RegExp, string])[] = [
  [/^(export\.create|token\.granted|hold\.set)$/, 'C'],
  [/^(export\.read|access\.audit)$/, 'R'],
  [/^(policy\.change|model\.stage|hold\.release)$/, 'U'],
  [/^(erasure\.exec|content\.erased)$/, 'D'],
];

const coding = (system: string, code: string, display: string) => ({ coding: [{ system, code, display }] });

/** A call of ours is a RESTful operation; the record itself, and what the log does, have kinds of DICOM. */
function kindOf(type: string) {
  const own = { system: 'urn:auricle:audit:type', code: type };
  if (/^(inference|token)\./.test(type)) {
    const operation = { system: 'http://hl7.org/fhir/restful-interaction', code: 'operation' };
    return { type: { system: AUDIT_TYPE, code: 'rest', display: 'RESTful Operation' }, subtype: [operation, own] };
  }
  const [code, display] = type.startsWith('export.')
    ? ['110106', 'Export']
    : type === 'access.audit'
      ? ['110101', 'Audit Log Used']
      : ['110100', 'Application Activity'];
  return { type: { system: DICOM, code, display }, subtype: [own] };
}

export function auditEventOf(entry: DerivedEntry, { origin }: DerivedContext): Record<string, unknown> {
  const { leaf, index, leafHash } = entry;
  const type = textOf(leaf.type) ?? 'unknown';
  const [status, reason] = [memberOf(entry, 'status'), textOf(memberOf(entry, 'reason'))];
  const [subject, request] = [textOf(memberOf(entry, 'subject')), textOf(leaf.req)];
  const [time, tenant] = [timeOf(entry, 'seq') ?? 0, textOf(leaf.tn)];
  const server = textOf(memberOf(entry, 'agent')) ?? textOf(leaf.by) ?? 'auricle';
  return {
    resourceType: 'AuditEvent',
    id: leaf.id,
    extension: [
      {
        url: 'urn:auricle:audit:entry',
        extension: [
          { url: 'log', valueString: origin },
          // FHIR's whole numbers end at 2^31, and those of a log do not.
          { url: 'index', valueString: String(index) },
          { url: 'leaf_hash', valueString: leafHash },
        ],
      },
    ],
    ...kindOf(type),
    action: ACTIONS.find(([pattern]) => pattern.test(type))?.[1] ?? 'E',
    period: { start: isoTime(timeOf(entry, 'origin') ?? time) },
    recorded: isoTime(time),
    outcome: outcomeOf(type, status),
    ...(reason !== undefined && { outcomeDesc: reason }),
    agent: [
      {
        type: coding(DICOM, '110153', 'Source Role ID'),
        who: { identifier: { system: 'urn:auricle:agent', value: server } },
        requestor: false,
      },
      {
        type: coding(DICOM, '110152', 'Destination Role ID'),
        who: { identifier: { system: 'urn:auricle:tenant', value: tenant ?? 'nobody' } },
        requestor: subject === undefined,
      },
      ...(subject === undefined
        ? []
        : [
            {
              type: coding(ROLES, 'IRCP', 'information recipient'),
              who: { identifier: { system: 'urn:auricle:subject', value: subject } },
              requestor: true,
            },
          ]),
    ],
    source: { observer: { display: textOf(leaf.p) ?? 'unknown' } },
    entity: entitiesOf(entry, request),
  };
}

function entitiesOf(entry: DerivedEntry, request: string | undefined): unknown[] {
  const model = textOf(memberOf(entry, 'model'));
  const system = 'http://terminology.hl7.org/CodeSystem/audit-entity-type';
  const transaction = {
    what: { identifier: { system: 'urn:auricle:request', value: request } },
    type: { system: `${BALP}/CodeSystem/BasicAuditEntityType`, code: 'XrequestId' },
  };
  const data = {
    what: { identifier: { system: 'urn:auricle:model', value: model } },
    type: { system, code: '2', display: 'System Object' },
    role: { system: 'http://terminology.hl7.org/CodeSystem/object-role', code: '4', display: 'Domain Resource' },
  };
  return [...(request === undefined ? [] : [transaction]), ...(model === undefined ? [] : [data])];
}
