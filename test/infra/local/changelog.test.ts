import { describe, expect, it } from 'vitest';
import { dateChangelog } from '../../../infra/local/changelog.ts';

const text = '# Changelog\n\n## Unreleased\n\n- New: a thing.\n\n## 0.1.0 (2026-10-01)\n\n- The first.\n';
const given = { version: '0.2.0', current: '0.1.0', date: '2026-11-23' };

describe('the changelog of a release', () => {
  it('moves unreleased entries under version and date', () => {
    const [head, tail] = text.split('- New');
    expect(dateChangelog(text, given)).toEqual({ ok: true, text: `${head}## 0.2.0 (2026-11-23)\n\n- New${tail}` });
  });

  it.each(['0.1.1', '0.2.0', '0.10.0', '1.0.0'])('takes %s after 0.1.0', (version) => {
    expect(dateChangelog(text, { ...given, version }).ok).toBe(true);
  });

  it.each(['0.1.0', '0.0.9', '0.2', 'v0.2.0', ''])('refuses version "%s" after 0.1.0', (version) => {
    expect(dateChangelog(text, { ...given, version }).ok).toBe(false);
  });

  it.each([
    ['no section', text.replace('Unreleased', 'Later')],
    ['an empty section', text.replace('- New: a thing.\n\n', '')],
  ])('refuses %s', (_, changed) => {
    expect(dateChangelog(changed, given).ok).toBe(false);
  });
});
