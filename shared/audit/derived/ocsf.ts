// An entry as an event of OCSF 1.8.0, class API Activity (6003), with the profile `ai_operation`; where it stands in the log
// is told as the profile `record_integrity` of 1.9.0-dev does: chain, place, fingerprint, signatures.
import { type DerivedContext, type DerivedEntry, memberOf, timeOf } from './row.ts';

const VERSION = '1.8.0';
const [CATEGORY, CLASS] = [6, 6003];

/** Of what the type of an event does: create, read, update, delete; 99 is everything else. */
const ACTIVITIES: readonly (readonly [RegExp, number])[] = [
  [/^(export\.create|token\.granted|hold\.set|shard\.open|producer\.open)$/, 1],
  [/^(export\.read|access\.audit)$/, 2],
  [/^(policy\.change|model\.stage|hold\.release|stream\.roll|route)$/, 3],
  [/^(erasure\.exec|content\.erased)$/, 4],
];
const activityOf = (type: string): number => ACTIVITIES.find(([pattern]) => pattern.test(type))?.[1] ?? 99;

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Success or failure, of what has a status or is a refusal. */
function statusOf(type: string, status: unknown): { status_id: number; severity_id: number } {
  const failed = type === 'inference.denied' || (typeof status === 'number' && (status >= 400 || status === 0));
  const known = failed || typeof status === 'number';
  return { status_id: known ? (failed ? 2 : 1) : 0, severity_id: failed ? 2 : 1 };
}

interface Signature {
  readonly signer: string;
  readonly value: string;
}

/** Lines of a note that are signatures, as name and base64. */
const signaturesOf = (note: string): Signature[] =>
  [...note.matchAll(/^— (\S+) (\S+)$/gmu)].map(([, signer = '', value = '']) => ({ signer, value }));

/** What the checkpoint says is the same of all entries. */
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
  const shown = Object.keys(entry.shown).length > 0 ? entry.shown : undefined;
  return {
    ...{ category_uid: CATEGORY, class_uid: CLASS, activity_id: activity, type_uid: CLASS * 100 + activity },
    ...(activity === 99 && { activity_name: type }),
    ...statusOf(type, status),
    ...(status !== undefined && { status_code: String(status) }),
    ...(reason !== undefined && { status_detail: reason }),
    ...{
      time: timeOf(entry, 'origin'),
      timezone_offset: 0,
      ...(typeof milliseconds === 'number' && { duration: Math.round(milliseconds) }),
    },
    metadata: {
      ...{ version: VERSION, profiles: ['ai_operation', 'record_integrity'], uid: leaf.id, event_code: type },
      ...{ product: { name: 'Auricle', vendor_name: 'Auricle' }, log_name: origin, sequence: leaf.tseq },
      ...{ logged_time: timeOf(entry, 'seq'), tenant_uid: leaf.tn },
    },
    actor: { app_uid: leaf.by, ...(subject !== undefined && { user: { uid: subject, type_id: 99 } }) },
    api: {
      operation: textOf(memberOf(entry, 'action')) ?? type,
      service: { name: 'speech' },
      ...(leaf.req !== undefined && { request: { uid: leaf.req } }),
      ...(typeof status === 'number' && { response: { code: status } }),
    },
    // Who called from where is never written down.
    src_endpoint: { type_id: 0, name: 'not recorded' },
    ...(model !== undefined && {
      ai_model: { name: model, ai_provider: 'self-hosted', version: textOf(memberOf(entry, 'revision')) },
    }),
    attestation_list: [
      {
        ...{ uid: String(index), chain_uid: origin, type: 'RFC 6962 leaf' },
        fingerprint: { algorithm_id: 3, algorithm: 'SHA-256', value: leafHash },
        signatures,
      },
    ],
    unmapped: { log: origin, index, leaf_hash: leafHash, leaf, ...(shown && { disclosed: shown }) },
  };
}
