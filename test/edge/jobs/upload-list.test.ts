import { beforeEach, describe, expect, it } from 'vitest';
import { FakeFunctions } from '../../fake/functions.ts';
import { ask, readRefusal } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

const bearer = async (claims = {}) => ({ authorization: `Bearer ${await makeToken(claims)}` });

let eu: FakeFunctions;
let us: FakeFunctions;
beforeEach(() => {
  eu = new FakeFunctions('eu');
  us = new FakeFunctions('us');
});

interface List {
  readonly data: { id: string }[];
  readonly next?: string;
}

describe('C4 T4 a list of uploads', () => {
  it('has those of all zones, newest first, page by page', async () => {
    const id = (digit: number) => `01890a5d-ac96-774b-bcce-00000000000${digit}`;
    for (const digit of [1, 4]) eu.row({ id: id(digit) });
    for (const digit of [2, 3]) us.row({ id: id(digit) });
    const headers = await bearer();
    const first = (await (await ask('/v1/uploads?limit=3', { headers })).json()) as List;
    expect(first.data.map((row) => row.id)).toEqual([id(4), id(3), id(2)]);
    const second = (await (await ask(`/v1/uploads?limit=3&after=${first.next}`, { headers })).json()) as List;
    expect([second.data.map((row) => row.id), second.next]).toEqual([[id(1)], undefined]);
    for (const query of ['limit=0', 'limit=x', 'after=x'])
      expect(await readRefusal(await ask(`/v1/uploads?${query}`, { headers }))).toMatchObject({
        code: 'field_invalid',
      });
  });

  it('A21 asks about one subject where the token shows no others', async () => {
    const row = eu.row();
    const own = await bearer({ sub: 'alice', visibility: 'subject' });
    await ask(`/v1/uploads/${row.id}`, { headers: own });
    await ask('/v1/uploads', { headers: own });
    await ask(`/v1/uploads/${row.id}`, { method: 'DELETE', headers: own });
    expect(eu.requests.map(({ owner }) => owner)).toEqual(['alice', 'alice', 'alice']);
    await ask(`/v1/uploads/${row.id}`, { headers: await bearer({ sub: 'alice' }) });
    expect(eu.requests.at(-1)?.owner).toBeUndefined();
    const nameless = await bearer({ sub: undefined, visibility: 'subject' });
    expect((await ask('/v1/uploads', { headers: nameless })).status).toBe(401);
  });

  it('asks about the zones of the token that are served', async () => {
    const row = eu.row();
    const headers = await bearer({ zones: ['eu', 'elsewhere'] });
    await ask(`/v1/uploads/${row.id}`, { headers });
    await ask('/v1/uploads', { headers });
    await ask(`/v1/uploads/${row.id}`, { method: 'DELETE', headers });
    expect(eu.requests.map(({ claims }) => claims.zones)).toEqual([['eu'], ['eu'], ['eu']]);
    expect(us.requests).toEqual([]);
  });

  it('keeps its order over short pages of several zones', async () => {
    const id = (digit: number) => `01890a5d-ac96-774b-bcce-00000000000${digit}`;
    for (const digit of [1, 2, 7, 8, 9]) eu.row({ id: id(digit) });
    for (const digit of [3, 4, 5, 6]) us.row({ id: id(digit) });
    for (const digit of [2, 8, 9]) eu.hidden.add(id(digit));
    const headers = await bearer();
    const found: string[] = [];
    for (let query = 'limit=2'; query !== ''; ) {
      const page = (await (await ask(`/v1/uploads?${query}`, { headers })).json()) as List;
      found.push(...page.data.map((row) => row.id));
      query = page.next === undefined ? '' : `limit=2&after=${page.next}`;
    }
    expect(found).toEqual([7, 6, 5, 4, 3, 1].map(id));
  });
});
