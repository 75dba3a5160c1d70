// Reports changed settings of the functions, such as trusted issuers and zone keys, to the log before the
// first use of the new value.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../../../shared/audit/canonical-json.ts';
import { formatNoteKey } from '../../../shared/audit/note-key.ts';
import { type Settings, settingNames } from '../../settings.ts';
import type { LogKeys } from '../log/log-keys.ts';
import type { LogStore } from '../log/log-store.ts';
import type { Reporter } from './report.ts';

/** Secrets, and settings that the platform sets at each start. Not even their digests are reported. */
export const UNREPORTED = [
  ...(['STORAGE_CONNECTION', 'SERVICE_KEY', 'WEBHOOK_KEY', 'AUDIT_KEY', 'AUDIT_NEXT_KEY', 'AUDIT_P256_KEY'] as const),
  'AUDIT_SIDECAR_KEY',
] as const;
type Setting = Exclude<keyof Settings, (typeof UNREPORTED)[number]>;
const isReported = (name: keyof Settings): name is Setting => !(UNREPORTED as readonly string[]).includes(name);

/** Compared values: every setting except those. `AUDIT_KEYS`: the public halves of the log's keys. */
export const RULES = [...settingNames.filter(isReported), 'AUDIT_KEYS'] as const;
export type Rules = Partial<Pick<Settings, Setting>> & { readonly AUDIT_KEYS?: readonly string[] };

/** Digests of the settings and of the log's keys. */
export const rulesOf = (settings: Partial<Pick<Settings, Setting>>, policy: LogKeys['policy']): Rules => ({
  ...settings,
  // The name is part of a key's line: one that stays the same.
  AUDIT_KEYS: policy('keys').logs.map(({ key }) => formatNoteKey(key)),
});

const known = z.object({ v: z.literal(1), rules: z.record(z.string(), z.string()) });

const digestOf = (value: unknown): string =>
  `sha256:${createHash('sha256')
    .update(canonicalJson(value ?? null))
    .digest('hex')}`;

const nameOf = (zone: string): string => `${zone}/rules`;

/** Returns whether all changes are reported. The next start or call finds the rest. */
export async function reportPolicy(
  store: Pick<LogStore, 'read' | 'create' | 'replace'>,
  zone: string,
  settings: Rules,
  reporter: Pick<Reporter, 'report'>,
): Promise<boolean> {
  const stored = await store.read('state', nameOf(zone));
  const before = stored ? known.parse(JSON.parse(new TextDecoder().decode(stored.bytes))).rules : {};
  const rules = Object.fromEntries(RULES.map((rule) => [rule, digestOf(settings[rule])]));
  const changed = RULES.filter((rule) => before[rule] !== rules[rule]);
  if (changed.length === 0) return true;
  // Concurrent reports share a write.
  const reported = await Promise.all(
    changed.map((rule) => {
      const from = before[rule];
      const draft = { type: 'policy.change' as const, policy: rule, zone, after: rules[rule] ?? '' };
      return reporter.report(zone, { ...draft, ...(from !== undefined && { before: from }) });
    }),
  );
  if (reported.some(({ ok }) => !ok)) return false;
  const bytes = new TextEncoder().encode(JSON.stringify({ v: 1, rules }));
  // A faster process has reported the same.
  await (stored
    ? store.replace('state', nameOf(zone), bytes, stored.version)
    : store.create('state', nameOf(zone), bytes));
  return true;
}
