import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { findCommand } from '../../../infra/cli/commands.ts';
import { refusals } from '../../../shared/refusal.ts';
import { promtool } from './install.ts';
import { alerts, panels, ruleFiles, runbook } from './observability.ts';

const run = promisify(execFile);
const entries = [...runbook.matchAll(/^## (\w+)$/gm)].map(([, name = '']) => name);

describe('rules', () => {
  it('have no fault that promtool knows', async () => {
    await run(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', ...ruleFiles]);
  });

  it.each(['rules', 'alerts'])('R10 L4 A19: report the truth in the cases of %s.test.yaml', async (name) => {
    await run(promtool, ['test', 'rules', path.join(import.meta.dirname, `${name}.test.yaml`)]);
  });
});

it('U10 alerts name outcomes that exist', () => {
  const named = alerts.flatMap(({ expr }) => [...expr.matchAll(/outcome=~?"([^"]*)"/g)].map(([, text = '']) => text));
  const words = named.flatMap((text) => text.split('|')).filter((word) => /^[a-z_]+$/.test(word));
  expect(words.length).toBeGreaterThan(8);
  for (const word of words) expect(Object.keys(refusals)).toContain(word);
});

describe('U10 the runbook', () => {
  it('has one entry for each alert, in its order', () => {
    expect(entries).toEqual(alerts.map(({ alert }) => alert));
  });

  it.each(alerts)('is linked by $alert', ({ alert = '', annotations, labels }) => {
    expect(annotations?.runbook_url).toBe(`RUNBOOK.md#${alert.toLowerCase()}`);
    expect(labels?.severity).toMatch(/^(page|ticket|review)$/);
  });

  it('names commands that exist', () => {
    const named = [...runbook.matchAll(/`npx auricle ([^`]+)`/g)].map(([, words = '']) => words.split(' '));
    expect(named.length).toBeGreaterThan(5);
    for (const words of named) expect(findCommand(words), words.join(' ')).toBeDefined();
  });
});

describe('A19 the dashboard', () => {
  it('has the four targets of the source', () => {
    const targets = panels.slice(0, 4).map(({ target }) => target);
    expect(targets).toEqual([{ min: 150 }, { max: 0.2 }, { min: 0.7, max: 0.85 }, { max: 0.003 }]);
  });

  it('gives each panel with a target the action of a miss', () => {
    for (const { title, target, action } of panels) expect(action !== undefined, title).toBe(target !== undefined);
  });
});
