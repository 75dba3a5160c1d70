import { describe, expect, it } from 'vitest';
import { newExport } from '../../../shared/audit/bundle/contract.ts';
import { newHold, newRelease } from '../../../shared/audit/privacy.ts';
import { reportText } from '../../../shared/audit/verify/report.ts';
import type { Report } from '../../../shared/audit/verify/verdict.ts';

/**
 * Clears a terminal (7 and 8 bits), overwrites a line, begins a line, reverses direction, or is no character.
 */
const tricks = ['\u001b[2J', '\u009b2J', '\r', '\nwitnessed (0)', '\u2028', '\u202e', '\u0000', '\u007f', '\ud800'];

describe('C9 foreign text has no effect on a terminal', () => {
  it.each(tricks.map((trick) => [JSON.stringify(trick), trick] as const))(
    '%s in a bundle is printed as what it is',
    (_name, trick) => {
      const report: Report = {
        ...{ verdict: 'invalid', exit: 50, summary: 'No.', findingCounts: { manifest: 1 } },
        findings: [{ stage: 'manifest', verdict: 'invalid', text: `the file ${trick} is missing` }],
        facts: {
          trust: 'policy given',
          origin: `log${trick}`,
          tenant: `t${trick}`,
          redaction: `r${trick}`,
          purpose: `case ${trick} 7`,
        },
      } as never;
      const text = reportText(report);
      const lines = reportText(
        JSON.parse(JSON.stringify(report).replaceAll(JSON.stringify(trick).slice(1, -1), 'x')),
      ).split('\n');
      expect(text.split('\n')).toHaveLength(lines.length);
      expect(text.replaceAll('\n', '')).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
      expect(text).toContain(`case \\u{${trick.codePointAt(0)?.toString(16)}}`);
    },
  );

  it.each(tricks.map((trick) => [JSON.stringify(trick), trick] as const))(
    '%s is no word of a purpose or a reason',
    (_name, trick) => {
      const asked = { tenant: 'a', request: 'r', formats: [], redaction: 'full', query: {} };
      expect(newExport.safeParse({ ...asked, purpose: `case ${trick}` }).success).toBe(false);
      expect(newRelease.safeParse({ reason: `case ${trick}` }).success).toBe(false);
      expect(newHold.safeParse({ id: crypto.randomUUID(), reason: `case ${trick}` }).success).toBe(false);
    },
  );

  it('words in any language are', () => {
    for (const words of ['Fall 7, «Prüfung»', '第七案', 'پرونده\u200cها', '👩\u200d⚖️ 7']) {
      expect(newRelease.safeParse({ reason: words }).success, words).toBe(true);
    }
  });
});
