import { describe, expect, it } from 'vitest';
import { describeBug } from '../../shared/bug.ts';

describe('a bug in a log', () => {
  it('is class and place, never the message, of any length', () => {
    const bug = describeBug(new RangeError('secret one\nsecret two\nat secret three'));
    expect(bug.name).toBe('RangeError');
    expect(bug.place).toMatch(/^at .*bug\.test/);
    expect(JSON.stringify(bug)).not.toContain('secret');
  });

  it.each(['a secret', { secret: 1 }, undefined, null])('can be anything: %s', (thrown) => {
    expect(describeBug(thrown)).toEqual({ name: typeof thrown, place: '' });
  });
});
