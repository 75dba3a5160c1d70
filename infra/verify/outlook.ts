// Presentation of a verdict: colour, mark and words.
import type { Report } from '../../shared/audit/verify/verdict.ts';

/** `good` needs a key from outside the bundle: one inside shows only that the bundle is consistent. */
export type State = 'good' | 'fair' | 'bad' | 'none';

export interface Outlook {
  readonly state: State;
  /** Mark for readers without colours, and for print. */
  readonly mark: string;
  readonly title: string;
  /** Action to take, if there is one. */
  readonly advice?: string;
}

const OWN_KEYS =
  'The keys that were believed came with the export, and a forger brings keys, too. Choose a policy that you have from ' +
  'elsewhere (a contract, DNS, an earlier export): this page then verifies again.';

const marks: Readonly<Record<State, string>> = { good: '✓', fair: '!', bad: '✕', none: '?' };

export function outlookOf({ verdict, facts }: Pick<Report, 'verdict' | 'facts'>): Outlook {
  const vouched = facts.trust === 'policy given';
  const describe = (state: State, title: string, advice?: string): Outlook => ({
    ...{ state, mark: marks[state], title },
    ...(advice !== undefined && { advice }),
  });
  const fair = (title: string) => describe('fair', title, vouched ? undefined : OWN_KEYS);
  if (verdict === 'witnessed' && vouched) return describe('good', 'Valid, complete, witnessed');
  if (verdict === 'witnessed') return fair('Consistent and complete; no key from outside vouches for it');
  if (verdict === 'unwitnessed' && vouched) return fair('Valid and complete, not witnessed');
  if (verdict === 'unwitnessed')
    return fair('Consistent and complete; not witnessed, no key from outside vouches for it');
  if (verdict === 'incomplete') return fair('Something is missing; what is here agrees');
  if (verdict === 'diverged') return describe('bad', 'Not the log that is known');
  if (verdict === 'invalid') return describe('bad', 'Not valid');
  const what = 'Drop the folder of an export, or a zip of it. It has a manifest.json and a manifest.note.';
  return describe('none', 'This is no export', what);
}
