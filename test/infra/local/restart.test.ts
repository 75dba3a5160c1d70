import { describe, expect, it } from 'vitest';
import { type Deaths, decideRestart } from '../../../infra/local/restart.ts';

const fresh: Deaths = { inARow: 0, everReady: false };
const short = { wasReady: true, lifeMs: 1_000 };
const never = { wasReady: false, lifeMs: 1_000 };

function waits(lives: { wasReady: boolean; lifeMs: number }[]): (number | 'gives up')[] {
  let deaths = fresh;
  return lives.map((life) => {
    const decision = decideRestart(deaths, life);
    deaths = decision.deaths;
    return decision.again ? decision.waitMs : 'gives up';
  });
}

describe('a part that dies', () => {
  it('starts again at once, and later each time it dies young', () => {
    expect(waits([short, short, short])).toEqual([200, 400, 800]);
  });

  it('waits at most five seconds, and never gives up on a recovered part', () => {
    expect(waits(Array(20).fill(short)).at(-1)).toBe(5_000);
    expect(waits([short, never, never, never, never])).not.toContain('gives up');
  });

  it('is as good as new after it has lived for a while', () => {
    expect(waits([short, short, { wasReady: true, lifeMs: 30_000 }, short])).toEqual([200, 400, 200, 400]);
  });

  it('is given up when it cannot start at all', () => {
    expect(waits([never, never, never])).toEqual([200, 400, 'gives up']);
  });
});
