const UNRELEASED = '## Unreleased\n';
const VERSION = /^(\d+)\.(\d+)\.(\d+)$/;

export type Dated = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string };

/** Moves the entries under "Unreleased" to a section of `version`, the successor of `current`. */
export function dateChangelog(
  text: string,
  { version, current, date }: { readonly version: string; readonly current: string; readonly date: string },
): Dated {
  if (!VERSION.test(version)) return { ok: false, problem: `${version} is no version: give X.Y.Z` };
  if (!isNewer(version, current)) return { ok: false, problem: `${version} does not follow ${current}` };
  const start = text.indexOf(UNRELEASED);
  if (start < 0) return { ok: false, problem: 'the changelog has no section "Unreleased"' };
  const entries = start + UNRELEASED.length;
  const next = text.indexOf('\n## ', entries);
  if (text.slice(entries, next < 0 ? undefined : next).trim() === '')
    return { ok: false, problem: 'the section "Unreleased" is empty' };
  return { ok: true, text: `${text.slice(0, entries)}\n## ${version} (${date})\n${text.slice(entries)}` };
}

function isNewer(version: string, current: string): boolean {
  const [one, other] = [version, current].map((text) => text.split('.').map(Number));
  const at = one?.findIndex((part, index) => part !== other?.[index]) ?? -1;
  return at >= 0 && (one?.[at] ?? 0) > (other?.[at] ?? 0);
}
