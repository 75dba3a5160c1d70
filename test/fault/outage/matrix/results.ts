// The table of RESULTS.md: a row for each scenario, with the figures of its last run.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type Call, type CallerName, callers } from './load.ts';
import { groups } from './scenarios.ts';

const FILE = path.resolve(import.meta.dirname, '../RESULTS.md');
const HEAD = `# Outages

\`npm run test:outage\` stops or kills parts of a local stack under recordings, streams of Deepgram's and
OpenAI's clients, uploads and projects. Each row is the last run of its scenario.

- A caller's cell: *served / refused / lost* calls and the longest wait; a stream's wait is beyond its audio,
  an upload's includes sending its file again. A refused call did not happen; a lost one failed after its start.
- *Served again*: from the end of the fault until each caller has an answer to a later request. Open streams add
  up to 11 s of their own audio. *All ended*: until all uploads and projects are done.
- *Kept* is no, with the problem, where a transcript differs, a refused request was carried out, work is open
  after 2 minutes, usage is not booked once, or \`auricle audit verify\` or \`audit doctor\` fails.

A retry of each refused or lost upload and project with its \`Idempotency-Key\` is served.

`;
const columns = ['scenario', ...callers, 'served again', 'all ended', 'kept', 'run'];
const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

export interface Row {
  readonly calls: readonly Call[];
  readonly servedMs: number;
  readonly endedMs: number;
  readonly problems: readonly string[];
}

const inSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

function cellOf(calls: readonly Call[], caller: CallerName): string {
  const own = calls.filter((call) => call.caller === caller);
  const count = (result: string) => own.filter((call) => call.result === result).length;
  const worst = Math.max(0, ...own.map(({ waitedMs }) => waitedMs));
  const reasons = new Set(own.flatMap(({ result, reason }) => (result === 'served' ? [] : [reason])));
  const why = reasons.size > 0 ? ` (${[...reasons].join('; ').replaceAll('|', '/').slice(0, 120)})` : '';
  return `${count('served')} / ${count('refused')} / ${count('lost')}, ${inSeconds(worst)}${why}`;
}

/** Rows of the file by scenario. */
function readRows(): Map<string, string> {
  const text = existsSync(FILE) ? readFileSync(FILE, 'utf8') : '';
  return new Map([...text.matchAll(/^\| (.+?) \|.*$/gm)].map(([row, name = '']) => [name, row]));
}

/** Replaces the row of a scenario. */
export function writeRow(name: string, { calls, servedMs, endedMs, problems }: Row): void {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: import.meta.dirname, encoding: 'utf8' });
  const cpus = os.cpus();
  const machine = `${cpus.length} × ${cpus[0]?.model ?? 'unknown'}`;
  const run = `${new Date().toISOString().slice(0, 10)}, ${commit.trim()}, ${machine}`;
  const kept = problems.length === 0 ? 'yes' : `no: ${problems.join('; ').replaceAll('|', '/').slice(0, 300)}`;
  const figures = callers.map((caller) => cellOf(calls, caller));
  const rows = readRows();
  rows.set(name, line([name, ...figures, inSeconds(servedMs), inSeconds(endedMs), kept, run]));
  const notRun = (scenario: string) => line([scenario, ...columns.slice(1, -1).map(() => ''), 'not run']);
  const names = Object.values(groups).flatMap((group) => group.map((one) => one.name));
  const table = [line(columns), line(columns.map(() => '---')), ...names.map((one) => rows.get(one) ?? notRun(one))];
  writeFileSync(FILE, `${HEAD}${table.join('\n')}\n`);
}
