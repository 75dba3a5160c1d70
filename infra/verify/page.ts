// The script of verify.html. It never asks anybody anything: the page forbids it.
import type { BundleFiles } from '../../shared/audit/verify/bundle-files.ts';
import type { Report } from '../../shared/audit/verify/verdict.ts';
import { verifyBundle } from '../../shared/audit/verify/verify-bundle.ts';
import { chosenFiles, droppedFiles } from './dropped-files.ts';

const element = <T extends HTMLElement>(id: string): T => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found as T;
};

const said = element('said');
const result = element('result');

const bytesIn = async (id: string): Promise<Uint8Array | undefined> => {
  const file = element<HTMLInputElement>(id).files?.[0];
  return file && new Uint8Array(await file.arrayBuffer());
};

async function verify(open: () => Promise<BundleFiles>): Promise<void> {
  said.textContent = 'Verifying …';
  result.hidden = true;
  try {
    const files = await open();
    const [policy, head] = [await bytesIn('policy'), await bytesIn('head')];
    const started = performance.now();
    const report = await verifyBundle(files, { now: Date.now(), ...(policy && { policy }), ...(head && { head }) });
    show(report, performance.now() - started);
  } catch (error) {
    const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    said.textContent = `This browser could not verify it (${why}). Try a newer one, or \`node verify.mjs\`.`;
  }
}

const words: Readonly<Record<Report['verdict'], string>> = {
  witnessed: 'Valid, complete, witnessed',
  unwitnessed: 'Valid and complete, not witnessed',
  incomplete: 'Valid, but something is missing',
  diverged: 'Not the log that is known',
  invalid: 'Not valid',
};

function show({ verdict, exit, summary, facts, findings, findingCounts }: Report, ms: number): void {
  result.dataset.verdict = verdict;
  element('verdict').textContent = words[verdict];
  element('summary').textContent = summary;
  said.textContent = `${words[verdict]}. Code ${exit}, ${(ms / 1_000).toFixed(1)} s.`;
  const rows: (readonly [string, string | undefined])[] = [
    ['Log', facts.origin],
    ['Entries of the log', facts.size?.toLocaleString('en')],
    ['Tenant', facts.tenant],
    ['Numbers of the tenant', facts.tseq && numbersIn(facts.tseq)],
    ['Entries here', facts.entries?.toLocaleString('en')],
    ['Disclosed, erased', facts.disclosed === undefined ? undefined : `${facts.disclosed}, ${facts.erased}`],
    ['Profile', facts.redaction],
    ['Purpose', facts.purpose],
    ['Made', facts.created],
    ['Witnesses', facts.witnesses?.map(({ name }) => name).join(', ') || 'none'],
    ['Believed', facts.trust],
  ];
  const table = element('facts');
  table.replaceChildren(...rows.flatMap(([name, value]) => (value === undefined ? [] : [rowOf(name, value)])));
  const list = element('findings');
  list.replaceChildren(...findings.map(({ stage, text, verdict: one }) => itemOf(`${stage}: ${text}`, one)));
  const all = Object.values(findingCounts).reduce((sum, count) => sum + count, 0);
  element('more').textContent = all > findings.length ? `and ${all - findings.length} more` : '';
  result.hidden = false;
  element('verdict').focus();
}

const numbersIn = ([first, last]: readonly [number, number]): string => (last < first ? 'none' : `${first} to ${last}`);

function rowOf(name: string, value: string): HTMLElement {
  const row = document.createElement('tr');
  const [head, cell] = [document.createElement('th'), document.createElement('td')];
  head.scope = 'row';
  [head.textContent, cell.textContent] = [name, value];
  row.append(head, cell);
  return row;
}

function itemOf(text: string, verdict: string): HTMLElement {
  const item = document.createElement('li');
  item.textContent = text;
  item.dataset.verdict = verdict;
  return item;
}

for (const id of ['folder', 'archive']) {
  const input = element<HTMLInputElement>(id);
  input.addEventListener('change', () => {
    const files = [...(input.files ?? [])];
    if (files.length > 0) void verify(() => chosenFiles(files));
  });
}

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
  // Entries have to be taken before the event is over.
  const files = items && droppedFiles(items);
  if (files) void verify(() => files);
});
