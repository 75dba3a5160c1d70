// Codes of FHIR R4 (4.0.1), DICOM audit messages and IHE's Basic Audit Log Patterns (BALP 1.1) for the
// members of a leaf. Each table names its source.

export interface Coding {
  readonly system: string;
  readonly code: string;
  readonly display?: string;
}

const DICOM = 'http://dicom.nema.org/resources/ontology/DCM';
const dicom = (code: string, display: string): Coding => ({ system: DICOM, code, display });

/** Our own code beside the standard ones preserves the leaf's type. */
const own = (code: string): Coding => ({ system: 'urn:auricle:audit:type', code });

/**
 * A request to Auricle. `rest`: hl7.org/fhir/R4/codesystem-audit-event-type.html; `operation`:
 * hl7.org/fhir/R4/codesystem-restful-interaction.html, since inference is none of FHIR's own interactions.
 */
const call = {
  type: {
    system: 'http://terminology.hl7.org/CodeSystem/audit-event-type',
    code: 'rest',
    display: 'RESTful Operation',
  },
  subtype: { system: 'http://hl7.org/fhir/restful-interaction', code: 'operation', display: 'operation' },
};

/**
 * Operations of the log and on the log: event ids and event type codes of DICOM PS3.15 A.5.3 (PS3.16 CID 400
 * and 401), which hl7.org/fhir/R4/valueset-audit-event-type.html and valueset-audit-event-sub-type.html
 * adopt.
 */
const kinds: readonly (readonly [RegExp, { readonly type: Coding; readonly subtype?: Coding }])[] = [
  [/^(inference|token)\./, call],
  [/^export\./, { type: dicom('110106', 'Export') }],
  [/^access\.audit$/, { type: dicom('110101', 'Audit Log Used') }],
  [/^keys$/, { type: dicom('110113', 'Security Alert'), subtype: dicom('110126', 'Node Authentication') }],
  [/^policy\.change$/, { type: dicom('110113', 'Security Alert'), subtype: dicom('110129', 'Security Configuration') }],
  [/^model\.stage$/, { type: dicom('110113', 'Security Alert'), subtype: dicom('110131', 'Software Configuration') }],
];
const other = { type: dicom('110100', 'Application Activity'), subtype: undefined };

/** Caches by type: types are few, entries of each are many. */
function byType<T>(of: (type: string) => T): (type: string) => T {
  const known = new Map<string, T>();
  return (type) => {
    const found = known.get(type);
    if (found !== undefined || known.size >= 256) return found ?? of(type);
    const made = of(type);
    known.set(type, made);
    return made;
  };
}

export const kindOf = byType(findKind);

function findKind(type: string): { readonly type: Coding; readonly subtype: readonly Coding[] } {
  const { type: kind, subtype } = kinds.find(([pattern]) => pattern.test(type))?.[1] ?? other;
  return { type: kind, subtype: [...(subtype ? [subtype] : []), own(type)] };
}

/** hl7.org/fhir/R4/codesystem-audit-event-action.html: create, read, update, delete, execute. */
const actions: readonly (readonly [RegExp, Action])[] = [
  [/^(export\.create|hold\.set)$/, 'C'],
  [/^(export\.read|access\.audit)$/, 'R'],
  [/^(policy\.change|model\.stage|model\.tier|hold\.release)$/, 'U'],
  [/^(erasure\.exec|content\.erased)$/, 'D'],
];
type Action = 'C' | 'R' | 'U' | 'D' | 'E';
export const actionOf = byType((type): Action => actions.find(([pattern]) => pattern.test(type))?.[1] ?? 'E');

/** Outcome members of a leaf. */
interface Went {
  readonly type: string;
  readonly status: unknown;
  readonly outcome: unknown;
  readonly action: unknown;
  readonly verdict: unknown;
}

/**
 * Maps an outcome to hl7.org/fhir/R4/codesystem-audit-event-outcome.html: 0 success, 4 minor failure ("often
 * equivalent to an HTTP 400 response"), 8 serious failure ("often equivalent to an HTTP 500 response").
 * `undefined` for an attempt, whose outcome is unknown; R4 requires none.
 */
export function outcomeOf({ type, status, outcome, action, verdict }: Went): '0' | '4' | '8' | undefined {
  if (type === 'inference.attempt') return undefined;
  // An unknown outcome is no success; neither are missing events.
  if (type === 'inference.unknown' || /(^|\.)gap$/.test(type)) return '8';
  if (type === 'inference.denied' || outcome === 'deferred' || verdict === 'FAIL') return '4';
  if (type === 'keys' && action === 'refused') return '4';
  if (typeof status !== 'number') return '0';
  if (status === 0 || status >= 500) return '8';
  return status >= 400 ? '4' : '0';
}

const source = dicom('110153', 'Source Role ID');
const destination = dicom('110152', 'Destination Role ID');

/**
 * Returns the roles of client and server. BALP 1.1, profiles Create, Update and Query: the client is the
 * source of data for the server; Read: the client is the destination.
 */
export const rolesOf = (action: Action): { readonly client: Coding; readonly server: Coding } =>
  action === 'R' ? { client: destination, server: source } : { client: source, server: destination };

const PARTICIPATION = 'http://terminology.hl7.org/CodeSystem/v3-ParticipationType';

/**
 * Returns the user's role: BALP 1.1, `DataSources` of Create, Update and Delete; `IRCP` of Read and Query.
 */
export const userOf = (action: Action): Coding =>
  action === 'C' || action === 'U' || action === 'D'
    ? { system: PARTICIPATION, code: 'AUT', display: 'author (originator)' }
    : { system: PARTICIPATION, code: 'IRCP', display: 'information recipient' };

/** BALP 1.1, `BasicAuditEntityType`: the transaction id of a request. */
export const transaction: Coding = {
  system: 'https://profiles.ihe.net/ITI/BALP/CodeSystem/BasicAuditEntityType',
  code: 'XrequestId',
};

/** hl7.org/fhir/R4/codesystem-audit-entity-type.html, and codesystem-object-role.html as BALP's `RestObjectRoles` has it. */
export const systemObject: Coding = {
  system: 'http://terminology.hl7.org/CodeSystem/audit-entity-type',
  code: '2',
  display: 'System Object',
};
export const domainResource: Coding = {
  system: 'http://terminology.hl7.org/CodeSystem/object-role',
  code: '4',
  display: 'Domain Resource',
};
