// The script of verify.html. It sends no requests: the content security policy of the page blocks them.
import type { BundleFiles } from '../../shared/audit/verify/bundle-files.ts';
import type { Facts, Report } from '../../shared/audit/verify/verdict.ts';
import { verifyBundle } from '../../shared/audit/verify/verify-bundle.ts';
import { chosenFiles, droppedFiles } from './dropped-files.ts';
import { EntriesTable, timeText } from './entries-table.ts';
import { outlookOf } from './outlook.ts';
import { Overview } from './overview.ts';
import { element, make, rowOf } from './page-elements.ts';

const statusLine = element('said');
const result = element('result');
const entries = new EntriesTable();
/** Files of the last export; a policy given later applies to the same export. */
let given: Promise<BundleFiles> | undefined;

const bytesIn = async (id: string): Promise<Uint8Array | undefined> => {
  const file = element<HTMLInputElement>(id).files?.[0];
  return file && new Uint8Array(await file.arrayBuffer());
};

async function verify(files: Promise<BundleFiles>): Promise<void> {
  given = files;
  statusLine.textContent = 'Verifying …';
  result.hidden = true;
  try {
    const [policy, head] = [await bytesIn('policy'), await bytesIn('head')];
    const [started, overview] = [performance.now(), new Overview()];
    const report = await verifyBundle(await files, {
      now: Date.now(),
      onEntry: (entry) => overview.add(entry),
      ...(policy && { policy }),
      ...(head && { head }),
    });
    if (given === files) show(report, overview, performance.now() - started);
  } catch (error) {
    const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    statusLine.textContent = `This browser could not verify it (${why}). Try a newer one, or \`node verify.mjs\`.`;
  }
}

function show(report: Report, overview: Overview, ms: number): void {
  const { verdict, exit, summary, facts, findings, findingCounts } = report;
  const { state, mark, title, advice = '' } = outlookOf(report);
  result.dataset.verdict = verdict;
  result.dataset.state = state;
  element('mark').textContent = mark;
  element('verdict').textContent = title;
  element('summary').textContent = state === 'none' ? '' : summary;
  element('advice').textContent = advice;
  element('when').textContent = `Verified ${timeText(Date.now())} by verify.html, code ${exit}.`;
  statusLine.textContent = `${title}. Code ${exit}, ${(ms / 1_000).toFixed(1)} s.`;
  const rows = factsOf(report, overview);
  element('facts').replaceChildren(...rows.map(([name, value]) => rowOf(name, value)));
  const list = element('findings');
  list.replaceChildren(...findings.map(({ stage, text }) => make('li', `${stage}: ${text}`)));
  const all = Object.values(findingCounts).reduce((sum, count) => sum + count, 0);
  element('more').textContent = all > findings.length ? `and ${all - findings.length} more` : '';
  element('found').hidden = findings.length === 0 || state === 'none';
  element('about').hidden = rows.length === 0 || facts.tenant === undefined;
  element('content').hidden = overview.entries === 0;
  element('doubt').hidden = state !== 'bad';
  const types = overview.types.map(([type, count]) => rowOf(type, count.toLocaleString('en')));
  element('types').replaceChildren(...types);
  entries.open(overview);
  result.hidden = false;
  element('verdict').focus();
}

/** Returns the count of gaps. An invalid export does not show what is missing. */
function gapsOf({ verdict, findingCounts: { numbers = 0, outboxes = 0 } }: Report): string {
  if (verdict === 'invalid') return 'not known';
  return numbers + outboxes === 0 ? 'none' : `${numbers + outboxes}, listed above`;
}

function factsOf(report: Report, overview: Overview): (readonly [string, string])[] {
  const { facts } = report;
  const period = overview.entries > 0 ? `${timeText(overview.from)} to ${timeText(overview.to)}` : undefined;
  const rows: (readonly [string, string | undefined])[] = [
    ['Tenant', facts.tenant],
    ['Period', period],
    ['Entries', facts.entries?.toLocaleString('en')],
    ['Numbers', facts.tseq && numbersIn(facts.tseq)],
    ['Gaps', gapsOf(report)],
    ['Disclosed', facts.disclosed?.toLocaleString('en')],
    ['Erased', facts.erased?.toLocaleString('en')],
    ['Profile', facts.redaction],
    ['Purpose', facts.purpose && facts.purpose + (facts.purposeShown ? '' : ' (by the manifest alone)')],
    ['Made', facts.created],
    ['Log', logText(facts)],
    ['Witnesses', facts.witnesses?.map(({ name }) => name).join(', ') || 'none'],
    ['Believed', facts.trust],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== undefined);
}

const numbersIn = ([first, last]: readonly [number, number]): string =>
  last < first ? 'none' : `${first.toLocaleString('en')} to ${last.toLocaleString('en')}`;

const logText = ({ origin, size }: Facts): string | undefined =>
  origin && origin + (size === undefined ? '' : `, ${size.toLocaleString('en')} entries of all tenants`);

for (const id of ['folder', 'archive']) {
  const input = element<HTMLInputElement>(id);
  input.addEventListener('change', () => {
    const files = [...(input.files ?? [])];
    if (files.length > 0) void verify(chosenFiles(files));
  });
}

for (const id of ['policy', 'head']) {
  element(id).addEventListener('change', () => {
    if (given) void verify(given);
  });
}

element('print').addEventListener('click', () => print());

const drop = element('drop');
drop.addEventListener('dragover', (event) => {
  event.preventDefault();
  drop.classList.add('over');
});
drop.addEventListener('dragleave', () => drop.classList.remove('over'));
drop.addEventListener('drop', (event) => {
  event.preventDefault();
  drop.classList.remove('over');
  const items = event.dataTransfer?.items;
  // Entries must be taken before the event ends.
  if (items) void verify(droppedFiles(items));
});
