// The report of a verification.

import { toBase64 } from '../../base64.ts';
import { printable } from '../../printable.ts';
import type { Manifest } from '../bundle/manifest.ts';
import type { Judged } from '../judge.ts';
import { shownBy } from './disclosed.ts';
import { type Facts, type Findings, type Report, stages, type Verdict, verdicts } from './verdict.ts';

const sentences: Readonly<Record<Verdict, string>> = {
  witnessed: 'Valid, complete, and witnessed as the policy requires.',
  unwitnessed: 'Valid and complete. Not witnessed: only the log itself says that every reader is shown the same.',
  incomplete: 'What is here is valid, but something is missing.',
  diverged: 'This is not the log of the given checkpoint.',
  invalid: 'Not valid: do not rely on anything in this bundle.',
  'no-export': 'This is no export: it has no manifest.',
};

/** Keys inside a bundle only show its consistency: a forger brings keys, too. */
const SELF_TRUST = ' No key from outside the bundle vouches for it.';

export function reportOf(
  findings: Findings,
  manifest: Manifest | undefined,
  end: Judged | undefined,
  policyGiven: boolean,
): Report {
  const verdict = findings.worst;
  const facts: Facts = {
    ...(manifest && factsOf(manifest)),
    ...(end && { size: end.checkpoint.size, root: toBase64(end.checkpoint.root), witnesses: end.witnesses }),
    ...(verdict !== 'no-export' && { trust: policyGiven ? 'policy given' : 'policy of the bundle' }),
  };
  const agrees = verdicts[verdict] <= verdicts.incomplete;
  const summary = sentences[verdict] + (agrees && !policyGiven ? SELF_TRUST : '');
  const list = findings.list.toSorted((a, b) => stages.indexOf(a.stage) - stages.indexOf(b.stage));
  return {
    ...{ verdict, exit: verdicts[verdict], summary, facts },
    ...{ findings: list, findingCounts: findings.counts },
  };
}

function factsOf(manifest: Manifest): Facts {
  const { export_id, log, tenant, range, counts, redaction, purpose, created, query, anchor } = manifest;
  const { entries, disclosed, erased } = counts;
  const { tseq, index } = range;
  const { origin } = log;
  // The anchor leaf comes last; a bounded query leaves it undisclosed, or a later log has it.
  const whole = query.to === undefined && query.tseq_to === undefined && anchor.log === undefined;
  const purposeShown = whole && shownBy(redaction, ['purpose']).length > 0;
  return {
    exportId: export_id,
    origin,
    tenant,
    tseq,
    index,
    entries,
    disclosed,
    erased,
    redaction,
    purpose,
    created,
    purposeShown,
  };
}

/** Log entries that concern the tenant have no number of it. */
function numbersText({ tseq: [first, last] = [0, 0], entries = 0 }: Facts): string {
  const own = entries - (last - first + 1);
  const of = own > 0 ? ` (${own} of them the log's own, without a number)` : '';
  const numbers = last < first ? 'no numbers' : `numbers ${first} to ${last}`;
  return `${numbers}, ${entries} ${entries === 1 ? 'entry' : 'entries'}${of}`;
}

const believed: Readonly<Record<NonNullable<Facts['trust']>, string>> = {
  'policy given': 'named by your policy',
  'policy of the bundle': "named by the bundle's own policy; give yours with --policy",
};

/** Formats the report for people. */
export function reportText({ verdict, exit, summary, findings, findingCounts, facts }: Report): string {
  const { origin, tenant, disclosed, erased, size, witnesses = [], trust, redaction, purpose } = facts;
  const { purposeShown = false } = facts;
  const about = [
    `${verdict} (${exit}): ${summary}`,
    ...(origin === undefined ? [] : [`  log        ${origin}${size === undefined ? '' : `, ${size} entries`}`]),
    ...(tenant === undefined ? [] : [`  tenant     ${tenant}, ${numbersText(facts)}`]),
    ...(redaction === undefined ? [] : [`  disclosed  ${disclosed} entries, ${erased} erased, profile ${redaction}`]),
    ...(purpose === undefined
      ? []
      : [
          `  purpose    ${purpose}${purposeShown ? '' : ' (by the manifest alone: the log does not disclose it here)'}`,
        ]),
    ...witnesses.map(({ name, time }) => `  witness    ${name}, ${new Date(time * 1_000).toISOString()}`),
    ...(trust === undefined ? [] : [`  believed   ${believed[trust]}`]),
  ];
  const found = findings.map(({ stage, verdict: one, text }) => `  ${stage}: ${text} [${one}]`);
  const kept = new Map<string, number>();
  for (const { stage } of findings) kept.set(stage, (kept.get(stage) ?? 0) + 1);
  const more = Object.entries(findingCounts)
    .filter(([stage, count]) => count > (kept.get(stage) ?? 0))
    .map(([stage, count]) => `  ${stage}: and ${count - (kept.get(stage) ?? 0)} more`);
  return [...about, ...found, ...more].map(printable).join('\n');
}
