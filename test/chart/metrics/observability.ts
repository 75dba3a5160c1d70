// Rules, alerts and panels of the chart, as their files have them.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';

export const OBSERVABILITY = path.resolve(import.meta.dirname, '../../../infra/pool/chart/observability');

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface Panel {
  readonly title: string;
  readonly query: string;
  readonly target?: { readonly min?: number; readonly max?: number };
  readonly action?: string;
}

const read = (file: string) => readFileSync(path.join(OBSERVABILITY, file), 'utf8');

export const ruleFiles = ['rules.yaml', 'sources.yaml', 'alerts.yaml'].map((file) => path.join(OBSERVABILITY, file));

const rulesOf = (file: string): readonly Rule[] =>
  (parse(read(file)) as { groups: { rules: Rule[] }[] }).groups.flatMap(({ rules }) => rules);

export const recorded = [...rulesOf('rules.yaml'), ...rulesOf('sources.yaml')];
export const alerts = rulesOf('alerts.yaml');
export const panels = (parse(read('dashboard.yaml')) as { panels: Panel[] }[]).flatMap((row) => row.panels);
export const runbook = read('RUNBOOK.md');
