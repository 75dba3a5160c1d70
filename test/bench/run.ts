// `npm run bench -- NAME [options]`: runs one benchmark, prints its table and writes a dated result; with options, which
// are for trying things out, only when `--save` is one of them. `--json` prints `{ "figures": … }` alone on stdout.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { writeReport } from './report.ts';

export interface Bench {
  /** Rows to print and to store, peers beside ours. */
  readonly table: readonly Readonly<Record<string, string | number>>[];
  /** Rows to print, where only a part of them is stored. */
  readonly printed?: Bench['table'];
  /** Name → number, for the result file and for the README. */
  readonly figures: Readonly<Record<string, number>>;
  /** Method, in a few sentences. */
  readonly how: string;
}

const here = import.meta.dirname;
const [name, ...given] = process.argv.slice(2);
const asJson = given.includes('--json');
const options = given.filter((option) => option !== '--save' && option !== '--json');
const saved = options.length === 0 || given.includes('--save');
const note = (line: string) => (asJson ? console.error(line) : console.log(line));
const known = readdirSync(here)
  .filter((file) => file.endsWith('.bench.ts'))
  .map((file) => file.replace('.bench.ts', ''));
if (name === undefined || !existsSync(path.join(here, `${name}.bench.ts`))) {
  console.error(`usage: npm run bench -- NAME [options] [--save]\nbenchmarks: ${known.join(', ')}`);
  process.exit(2);
}

const { measure } = (await import(`./${name}.bench.ts`)) as { measure(options: string[]): Promise<Bench> };
const { table, printed = table, figures, how } = await measure(options);
if (!asJson) console.table(printed);
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: here, encoding: 'utf8' }).trim();
const machine = `${os.cpus().length} × ${os.cpus()[0]?.model ?? 'unknown'}, ${Math.round(os.totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
console.log(JSON.stringify(asJson ? { figures } : figures));
if (saved) {
  mkdirSync(path.join(here, 'results'), { recursive: true });
  const file = path.join(here, 'results', `${name}.json`);
  writeFileSync(
    file,
    `${JSON.stringify({ date: new Date().toISOString(), commit, machine, figures, how, table }, undefined, 2)}\n`,
  );
  writeReport();
  note(`written: test/bench/results/${name}.json, test/bench/RESULTS.md`);
} else note('not written: options were given without --save');
