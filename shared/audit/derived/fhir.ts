// Renders an entry as a FHIR R4 AuditEvent (hl7.org/fhir/R4/auditevent.html), after IHE's Basic Audit Log
// Patterns (BALP 1.1): agent, action and tenant, with the request's id as a transaction. No profile is
// claimed, because the log knows neither patients nor network addresses. Members that FHIR lacks, such as the
// position in the log, are in an extension.
import {
  actionOf,
  type Coding,
  domainResource,
  kindOf,
  outcomeOf,
  rolesOf,
  systemObject,
  transaction,
  userOf,
} from './fhir-codes.ts';
import { type DerivedContext, type DerivedEntry, isoTime, memberOf, timeOf } from './row.ts';

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const concept = (coding: Coding) => ({ coding: [coding] });
const identified = (system: string, value: string) => ({ identifier: { system, value } });

export function auditEventOf(entry: DerivedEntry, { origin }: DerivedContext): Record<string, unknown> {
  const { leaf, index, leafHash } = entry;
  const type = textOf(leaf.type) ?? 'unknown';
  const member = (name: string) => memberOf(entry, name);
  const went = { status: member('status'), outcome: member('outcome'), action: member('action') };
  const outcome = outcomeOf({ type, ...went, verdict: member('verdict') });
  const described = textOf(member('reason')) ?? (outcome === '4' ? textOf(member('waits')) : undefined);
  const purpose = textOf(member('purpose'));
  const entity = entitiesOf(entry);
  return {
    resourceType: 'AuditEvent',
    id: leaf.id,
    extension: [
      {
        url: 'urn:auricle:audit:entry',
        extension: [
          { url: 'log', valueString: origin },
          // FHIR integers end at 2^31; indexes of a log do not.
          { url: 'index', valueString: String(index) },
          { url: 'leaf_hash', valueString: leafHash },
        ],
      },
    ],
    ...kindOf(type),
    action: actionOf(type),
    ...periodOf(entry, type),
    recorded: isoTime(timeOf(entry, 'seq') ?? 0),
    ...(outcome !== undefined && { outcome }),
    ...(described !== undefined && { outcomeDesc: described }),
    ...(purpose !== undefined && { purposeOfEvent: [{ text: purpose }] }),
    agent: agentsOf(entry, type),
    source: { observer: { display: textOf(leaf.p) ?? 'unknown' } },
    // FHIR's JSON has no empty arrays.
    ...(entity.length > 0 && { entity }),
  };
}

/**
 * Returns the event's period. A leaf is written at the end of its event; `milliseconds` or `since` gives the
 * start. An attempt has no end.
 */
function periodOf(entry: DerivedEntry, type: string): { period: Record<string, string | undefined> } {
  const end = timeOf(entry, 'origin') ?? timeOf(entry, 'seq') ?? 0;
  const [took, since] = [memberOf(entry, 'milliseconds'), memberOf(entry, 'since')];
  const began = typeof took === 'number' ? end - took : typeof since === 'number' ? since : end;
  const start = isoTime(Math.min(began, end));
  return { period: type === 'inference.attempt' ? { start } : { start, end: isoTime(end) } };
}

/** Returns Auricle, the tenant, and the token's subject if known. One of them is the requestor. */
function agentsOf(entry: DerivedEntry, type: string): unknown[] {
  const { leaf } = entry;
  const action = actionOf(type);
  const { client, server } = rolesOf(action);
  const subject = textOf(memberOf(entry, 'subject'));
  const own = textOf(memberOf(entry, 'agent')) ?? textOf(leaf.by) ?? 'auricle';
  const user = subject !== undefined && {
    type: concept(userOf(action)),
    who: identified('urn:auricle:subject', subject),
    requestor: true,
  };
  return [
    { type: concept(server), who: identified('urn:auricle:agent', own), requestor: false },
    {
      type: concept(client),
      who: identified('urn:auricle:tenant', textOf(leaf.tn) ?? 'nobody'),
      requestor: subject === undefined,
    },
    ...(user ? [user] : []),
  ];
}

function entitiesOf(entry: DerivedEntry): unknown[] {
  const [request, model] = [textOf(entry.leaf.req), textOf(memberOf(entry, 'model'))];
  return [
    ...(request === undefined ? [] : [{ what: identified('urn:auricle:request', request), type: transaction }]),
    ...(model === undefined
      ? []
      : [{ what: identified('urn:auricle:model', model), type: systemObject, role: domainResource }]),
  ];
}
