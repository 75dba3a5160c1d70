import { describe, expect, it } from 'vitest';
import { TenantLimiter } from '../../functions/http/limiter.ts';

const done = { status: 200 };
const statusOf = async (asked: Promise<{ status?: number; jsonBody?: unknown }>) => (await asked).status;

describe('C9 a flood of one tenant leaves slots to others', () => {
  it('refuses at once past the tenant’s or the total bound, and frees slots', async () => {
    const places = new TenantLimiter(5, 2);
    const ends: (() => void)[] = [];
    const work = () => new Promise<typeof done>((settle) => void ends.push(() => settle(done)));
    const held = ['ann', 'ann', 'bob', 'bob', 'cay'].map((tenant) => places.run(tenant, work));
    let begun = 0;
    const more = async () => {
      begun += 1;
      return done;
    };
    const asked = await Promise.all(Array.from({ length: 300 }, () => places.run('ann', more)));
    for (const one of asked) {
      expect(one).toMatchObject({
        status: 429,
        jsonBody: { error: { reason: 'allowance_concurrent', params: { limit: 2 } } },
      });
    }
    expect(await places.run('dan', more)).toMatchObject({
      status: 429,
      jsonBody: { error: { params: { limit: 5 } } },
    });
    expect(begun).toBe(0);
    ends[0]?.();
    await held[0];
    expect(await statusOf(places.run('dan', more))).toBe(200);
    expect(await statusOf(places.run('ann', more))).toBe(200);
    for (const end of ends) end();
    await Promise.all(held);
    await expect(places.run('ann', () => Promise.reject(new Error('storage')))).rejects.toThrow('storage');
    for (let count = 0; count < 5; count += 1) expect(await statusOf(places.run('ann', more))).toBe(200);
  });
});
