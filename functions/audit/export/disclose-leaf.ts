// Selects the hidden values of a leaf that an export discloses.
import { checkDisclosure } from '../../../shared/audit/commitment.ts';
import { formatDisclosureLine, shownBy } from '../../../shared/audit/verify/disclosed.ts';
import type { Hidden } from '../sidecar/sidecar.ts';

export interface DisclosedLeaf {
  readonly line: string | undefined;
  readonly values: Readonly<Record<string, unknown>>;
  readonly counted: 'disclosed' | 'erased' | undefined;
}

const nothing: DisclosedLeaf = { line: undefined, values: {}, counted: undefined };

/** `undefined` of the sidecar, for a leaf that hides something, is missing: the bundle then says so by lacking it. */
export function discloseLeaf(
  index: number,
  commitments: Readonly<Record<string, string>>,
  hidden: Hidden,
  redaction: string,
): DisclosedLeaf {
  const names = shownBy(redaction, Object.keys(commitments));
  if (names.length === 0 || hidden === undefined) return nothing;
  if (hidden === 'erased')
    return { line: formatDisclosureLine({ index, sd: {}, erased: true }), values: {}, counted: 'erased' };
  const sd: Record<string, string> = {};
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const text = hidden[name];
    const disclosure = text === undefined ? undefined : checkDisclosure(text, commitments);
    if (text === undefined || disclosure?.name !== name) continue;
    sd[name] = text;
    values[name] = disclosure.value;
  }
  if (Object.keys(sd).length === 0) return nothing;
  return { line: formatDisclosureLine({ index, sd, erased: false }), values, counted: 'disclosed' };
}
