// Renders an entry as an event of OCSF 1.8.0, class API Activity (6003), with the profile `ai_operation`. The
// profile `record_integrity` of 1.9.0-dev carries the entry's log, position, fingerprint and signatures.
import { type DerivedContext, type DerivedEntry, memberOf, timeOf } from './row.ts';

const VERSION = '1.8.0';
const [CATEGORY, CLASS] = [6, 6003];
const PRODUCT = { name: 'Auricle', vendor_name: 'Auricle' };
const PROFILES = ['ai_operation', 'record_integrity'];

/** OCSF activity by event type: 1 create, 2 read, 3 update, 4 delete; 99 is everything else. */
const ACTIVITIES: readonly (readonly [RegExp, number])[] = [
  [/^(export\.create|token\.granted|hold\.set|shard\.open|producer\.open)$/, 1],
  [/^(export\.read|access\.audit)$/, 2],
  [/^(policy\.change|model\.stage|model\.tier|hold\.release|stream\.roll|route)$/, 3],
  [/^(erasure\.exec|content\.erased)$/, 4],
];
const activityOf = (type: string): number => ACTIVITIES.find(([pattern]) => pattern.test(type))?.[1] ?? 99;

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Returns success or failure for an event with a status or a refusal. */
function statusOf(type: string, status: unknown): { status_id: number; severity_id: number } {
  const failed = type === 'inference.denied' || (typeof status === 'number' && (status >= 400 || status === 0));
  const known = failed || typeof status === 'number';
  return { status_id: known ? (failed ? 2 : 1) : 0, severity_id: failed ? 2 : 1 };
}

interface Signature {
  readonly signer: string;
  readonly value: string;
}

/** Parses the signature lines of a note into name and base64. */
const signaturesOf = (note: string): Signature[] =>
  [...note.matchAll(/^— (\S+) (\S+)$/gmu)].map(([, signer = '', value = '']) => ({ signer, value }));

/** Parses the checkpoint once for all entries. */
export function openOcsf({ origin, note }: DerivedContext): (entry: DerivedEntry) => Record<string, unknown> {
  const signatures = signaturesOf(note);
  return (entry) => ocsfOf(entry, origin, signatures);
}

function ocsfOf(entry: DerivedEntry, origin: string, signatures: readonly Signature[]): Record<string, unknown> {
  const { leaf, index, leafHash } = entry;
  const type = textOf(leaf.type) ?? 'unknown';
  const [status, reason] = [memberOf(entry, 'status'), textOf(memberOf(entry, 'reason'))];
  const [model, subject] = [textOf(memberOf(entry, 'model')), textOf(memberOf(entry, 'subject'))];
  const activity = activityOf(type);
  const milliseconds = memberOf(entry, 'milliseconds');
  const { status_id, severity_id } = statusOf(type, status);
  const shown = Object.keys(entry.shown).length > 0 ? entry.shown : undefined;
  // Sorted members serialise fastest (`canonical-json.ts`); undefined ones are omitted.
  return {
    activity_id: activity,
    activity_name: activity === 99 ? type : undefined,
    actor: { app_uid: leaf.by, user: subject === undefined ? undefined : { type_id: 99, uid: subject } },
    ai_model:
      model === undefined
        ? undefined
        : { ai_provider: 'self-hosted', name: model, version: textOf(memberOf(entry, 'revision')) },
    api: {
      operation: textOf(memberOf(entry, 'action')) ?? type,
      request: leaf.req === undefined ? undefined : { uid: leaf.req },
      response: typeof status === 'number' ? { code: status } : undefined,
      service: { name: 'speech' },
    },
    attestation_list: [
      {
        chain_uid: origin,
        fingerprint: { algorithm: 'SHA-256', algorithm_id: 3, value: leafHash },
        signatures,
        type: 'RFC 6962 leaf',
        uid: String(index),
      },
    ],
    category_uid: CATEGORY,
    class_uid: CLASS,
    duration: typeof milliseconds === 'number' ? Math.round(milliseconds) : undefined,
    metadata: {
      event_code: type,
      log_name: origin,
      logged_time: timeOf(entry, 'seq'),
      product: PRODUCT,
      profiles: PROFILES,
      sequence: leaf.tseq,
      tenant_uid: leaf.tn,
      uid: leaf.id,
      version: VERSION,
    },
    severity_id,
    // The log never records network addresses.
    src_endpoint: { name: 'not recorded', type_id: 0 },
    status_code: status === undefined ? undefined : String(status),
    status_detail: reason,
    status_id,
    time: timeOf(entry, 'origin'),
    timezone_offset: 0,
    type_uid: CLASS * 100 + activity,
    unmapped: { disclosed: shown, index, leaf, leaf_hash: leafHash, log: origin },
  };
}
