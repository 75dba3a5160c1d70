import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { lineOfErased, lineOfWaiting, privacyVerbs } from '../../../infra/cli/audit/erase.ts';
import { searchAudit } from '../../../infra/cli/audit/search.ts';
import type { Arguments } from '../../../infra/cli/options.ts';
import { foundEntries } from '../../../shared/audit/search.ts';

const ANN = `c1:${'a'.repeat(64)}`;

it('C9 no answer of a search names a folder', () => {
  const answer = (zone: string) => foundEntries.safeParse({ zone, hits: [] }).success;
  expect(['eu', 'eu-west.1', '../eu', 'eu/x', '..', ''].map(answer)).toEqual([true, true, false, false, false, false]);
});

it('C12 a search names its zones, and uses the commitment shown in exports', async () => {
  const asked: string[] = [];
  const edge = createServer((request, response) => {
    asked.push(`${request.url} ${String(request.headers['x-auricle-subject'])}`);
    response.end(JSON.stringify({ data: [{ zone: 'eu', hits: [] }] }));
  });
  await new Promise<void>((settle) => edge.listen(0, '127.0.0.1', settle));
  const { port } = edge.address() as AddressInfo;
  const given = { edge: `http://127.0.0.1:${port}`, operands: ['search'] } as unknown as Arguments;
  const search = (subject: string) => searchAudit({ ...given, subject }, {});
  expect(await search(ANN)).toMatchObject({ exit: 1, text: 'nothing was found in eu' });
  await search('ann');
  edge.close();
  expect(asked).toEqual([`/v1/audit/search?commitment=${ANN.replace(':', '%3A')} undefined`, '/v1/audit/search? ann']);
});

describe('C12 auricle audit erase and hold', () => {
  it('do nothing without a subject or a basis', async () => {
    const given = (more: Partial<Arguments>) =>
      ({ operands: ['x'], edge: 'http://nowhere.invalid', ...more }) as Arguments;
    const run = async (verb: string, more: Partial<Arguments>) => privacyVerbs.get(verb)?.(given(more), {});
    expect((await run('erase', { basis: 'gdpr-17' }))?.exit).toBe(2);
    expect((await run('erase', { subject: 'ann' }))?.exit).toBe(2);
    const anyWord = await run('erase', { subject: 'ann', basis: 'because' });
    expect(anyWord).toMatchObject({
      exit: 2,
      text: expect.stringMatching(/gdpr-17, ccpa-1798\.105, .* or other:NAME/),
    });
    expect((await run('hold', { subject: 'ann' }))?.exit).toBe(2);
  });

  it('a deferred erasure names its first basis when requested with another', () => {
    const waits = { zone: 'eu', outcome: 'deferred' as const, basis: 'hold', asked: 'gdpr-17', count: 0 };
    expect(lineOfErased(waits, 'contract')).toBe(
      'eu  waits until it is released (hold); already requested with basis gdpr-17',
    );
    expect(lineOfErased(waits, 'gdpr-17')).not.toContain('already');
    const listed = { zone: 'eu', subject: ANN, basis: 'gdpr-17', at: 0, deferred: { basis: 'hold' } };
    expect(lineOfWaiting(listed)).toBe(
      `eu  ${ANN}  asked 1970-01-01, waits until it is released (hold), and runs within five minutes of that`,
    );
    const none = { zone: 'eu', outcome: 'nothing' as const, basis: 'gdpr-17', count: 0 };
    expect(lineOfErased(none, 'gdpr-17')).toMatch(/its own acts on the record .* stay$/);
    const done = { zone: 'eu', outcome: 'done' as const, basis: 'gdpr-17', asked: 'gdpr-17', count: 1 };
    expect(lineOfErased(done, 'gdpr-17')).toMatch(/1 record$/);
  });
});
