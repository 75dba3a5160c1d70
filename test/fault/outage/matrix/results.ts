// The table of RESULTS.md: a row for each scenario, with the figures of its last run.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type Call, type CallerName, callers } from './load.ts';
import { groups } from './scenarios.ts';

const FILE = path.resolve(import.meta.dirname, '../RESULTS.md');
const HEAD = `# Outages

\`npm run test:outage\` writes this table. Each row is the last run of its scenario: recordings, streams
of the clients that Deepgram and OpenAI publish, uploads and projects run at once on one local stack
while parts are stopped or killed.

A cell of a caller is *served / refused / lost* and the longest that one call waited; for a stream,
beyond the duration of its sound. A refusal has a reason and did not happen; a lost call ended with an
error after it had begun. The codes of both follow. The file of an upload is sent again until storage
takes it, as clients do, and the wait is that of the whole upload.

*Served again* is the time from the end of the fault until each of the five callers was answered a
request that it sent afterwards. A caller sends the next one when the last one has ended, so streams that
were open add up to 11 s of their own sound. *All ended* is the time until all uploads and projects were
done, with those that were sent until then. *Kept* is no, with the problem, where a transcript differs, a
refused request was carried out, work is open after 2 minutes, the allowance is not booked once, or
\`auricle audit verify\` or \`auricle audit doctor\` fails.

A retry of each refused or lost upload and project with its \`Idempotency-Key\` follows, and is served.

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
  const machine = `${cpus.length} × ${cpus[0]?.model ?? 'unknown'}, ${Math.round(os.totalmem() / 2 ** 30)} GiB`;
  const run = `${new Date().toISOString().slice(0, 16)}Z, ${commit.trim()}, ${machine}`;
  const kept = problems.length === 0 ? 'yes' : `no: ${problems.join('; ').replaceAll('|', '/').slice(0, 300)}`;
  const figures = callers.map((caller) => cellOf(calls, caller));
  const rows = readRows();
  rows.set(name, line([name, ...figures, inSeconds(servedMs), inSeconds(endedMs), kept, run]));
  const notRun = (scenario: string) => line([scenario, ...columns.slice(1, -1).map(() => ''), 'not run']);
  const names = Object.values(groups).flatMap((group) => group.map((one) => one.name));
  const table = [line(columns), line(columns.map(() => '---')), ...names.map((one) => rows.get(one) ?? notRun(one))];
  writeFileSync(FILE, `${HEAD}${table.join('\n')}\n`);
}
