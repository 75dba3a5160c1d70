import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { AUDIO_PER_DAY_S, REQUESTS_CONCURRENT, REQUESTS_PER_MINUTE } from '../../../edge/limits.ts';
import { UPLOADS_OPEN_MAX } from '../../../functions/jobs/grant-upload.ts';
import { accessToken, readClaims, scopes } from '../../../shared/tenant/claims.ts';
import { issuerBounds } from '../../../shared/tenant/issuer.ts';

const page = readFileSync('.github/TOKENS.md', 'utf8');

/** Rows of the table with this first head: name and second cell. */
function rowsOf(head: string): [string, string][] {
  const [, table = ''] = page.split(`| ${head} |`);
  const rows = (table.split('\n\n')[0] ?? '').split('\n').slice(2);
  return rows.map((line) => {
    const [, name = '', cell = ''] = line.split('|').map((part) => part.trim());
    return [name.replaceAll('`', ''), cell.replaceAll('`', '')];
  });
}

interface Property {
  readonly default?: unknown;
}
const { properties, required = [] } = z.toJSONSchema(accessToken, { io: 'input' }) as {
  properties: Record<string, Property>;
  required?: string[];
};

describe('A1 the page of tokens', () => {
  it('A1 has every claim with its default', () => {
    const expected = Object.entries(properties).map(([name, { default: value }]): [string, string] => {
      if (required.includes(name)) return [name, 'required'];
      return [name, value === undefined ? '–' : JSON.stringify(value)];
    });
    expect(rowsOf('claim').sort()).toEqual(expected.sort());
  });

  it('A1 has every bound of an allowance with its default', () => {
    expect(rowsOf('member')).toEqual([
      ['requestsPerMinute', String(REQUESTS_PER_MINUTE)],
      ['requestsAtOnce', String(REQUESTS_CONCURRENT)],
      ['audioSecondsPerDay', String(AUDIO_PER_DAY_S)],
      ['uploadsAtOnce', String(UPLOADS_OPEN_MAX)],
      ['uploadBytesAtOnce', '–'],
    ]);
    const allowance = accessToken.shape.allowance.unwrap();
    expect(rowsOf('member').map(([name]) => name)).toEqual(Object.keys(allowance.shape));
  });

  it('A1 has every scope', () => expect(rowsOf('scope').map(([name]) => name)).toEqual([...scopes, 'pool']));

  it('A1 has entries of issuers that the edge takes', () => {
    const entries = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, text = '']) => JSON.parse(text));
    expect(entries).toHaveLength(3);
    for (const entry of entries) expect(z.looseObject(issuerBounds).safeParse(entry).success).toBe(true);
  });
});

describe('A1 tokens of issuers with claims of their own', () => {
  const token = { tenant: 'acme', zones: ['eu'], exp: 1 };
  const scopesOf = (claims: object) => {
    const read = readClaims({ ...token, ...claims });
    return read.ok ? [...read.value.scopes] : read.refusal.detail;
  };

  it.each<[object, unknown]>([
    [{ scope: 'transcribe models', scp: 'infer' }, ['transcribe', 'models']],
    [{ scp: 'transcribe', roles: ['infer'] }, ['transcribe']],
    [{ roles: ['transcribe', 'uploads'] }, ['transcribe', 'uploads']],
    [{}, 'claims: scope'],
    [{ roles: 'transcribe' }, 'claims: roles'],
  ])('A1 reads the scopes of %o', (claims, expected) => expect(scopesOf(claims)).toEqual(expected));

  it('A1 reads lists that are written as text', () => {
    const read = readClaims({ ...token, scope: 'transcribe', zones: 'eu us', languages: 'en de' });
    expect(read).toMatchObject({ ok: true, value: { zones: ['eu', 'us'], languages: ['en', 'de'] } });
    expect(readClaims({ ...token, scope: 'transcribe', zones: ' ' }).ok).toBe(false);
    expect(readClaims({ ...token, scope: 'transcribe', zones: [] }).ok).toBe(false);
  });
});
