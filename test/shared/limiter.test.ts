import { expect, it } from 'vitest';
import { Limiter } from '../../shared/limiter.ts';

it('refuses beyond the maximum of a key until a slot is left', () => {
  const limiter = new Limiter(2);
  const slots = [limiter.enter('a'), limiter.enter('a')];
  expect(limiter.enter('a')).toBeUndefined();
  expect(limiter.enter('b')).toBeDefined();
  slots[0]?.leave();
  slots[0]?.leave();
  expect(limiter.enter('a')).toBeDefined();
  expect(limiter.enter('a')).toBeUndefined();
});

it('frees a slot whose lifetime has passed unless its holder renews it', () => {
  const limiter = new Limiter(1, 1_000);
  const slot = limiter.enter('a', 0);
  expect(limiter.enter('a', 999)).toBeUndefined();
  slot?.renew(999);
  expect(limiter.enter('a', 1_998)).toBeUndefined();
  expect(limiter.enter('a', 1_999)).toBeDefined();
});
