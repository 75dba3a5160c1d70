import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Figure, figures } from './figures.ts';

interface Result {
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly figures: Readonly<Record<string, number>>;
}

const REPORT = path.join(import.meta.dirname, 'RESULTS.md');

/** Returns the text of `RESULTS.md`, made of the stored results. Throws when a result lacks a listed figure. */
export function renderReport(): string {
  const sections = Object.entries(figures).map(([file, rows]) => renderSection(file, rows));
  return `# Measured\n\nGenerated from \`results/\` by \`npm run bench\`; each file there also says how it was measured.\n\n${sections.join('\n')}`;
}

/** Writes `RESULTS.md` beside this file. */
export function writeReport(): void {
  writeFileSync(REPORT, renderReport());
}

function renderSection(file: string, rows: readonly Figure[]): string {
  const source = path.join(import.meta.dirname, 'results', `${file}.json`);
  const { date, commit, machine, figures } = JSON.parse(readFileSync(source, 'utf8')) as Result;
  const lines = rows.map(({ name, what, decimals, percent }) => {
    const value = figures[name];
    if (value === undefined) throw new Error(`results/${file}.json has no figure ${name}`);
    const shown = percent ? `${(value * 100).toFixed(decimals)} %` : value.toFixed(decimals);
    return `| ${what} | ${shown} | \`${name}\` |`;
  });
  const head = `## ${file}\n\n${date.slice(0, 10)}, commit ${commit}, ${machine}.\n\n| what | figure | name |\n| --- | --- | --- |\n`;
  return `${head}${lines.join('\n')}\n`;
}
