import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterHeard, afterSent, maySend, openWindow } from '../../../shared/stream/window.ts';

describe('flow control', () => {
  it('never has more under way than the window, but for one message', () => {
    const step = fc.oneof(
      fc.record({ send: fc.integer({ min: 1, max: 300 }) }),
      fc.record({ hear: fc.integer({ min: -50, max: 400 }) }),
    );
    fc.assert(
      fc.property(fc.array(step), fc.nat(1_000), (steps, from) => {
        let window = openWindow(from);
        for (const one of steps) {
          if ('send' in one) {
            const idle = window.sent === window.heard;
            const may = maySend(window, one.send, 100);
            expect(may).toBe(idle || window.sent + one.send - window.heard <= 100);
            if (!may) continue;
            window = afterSent(window, one.send);
            expect(window.sent - window.heard).toBeLessThanOrEqual(Math.max(100, one.send));
          } else {
            const next = afterHeard(window, window.heard + one.hear);
            expect(next === undefined).toBe(window.heard + one.hear > window.sent);
            if (next) {
              expect(next.heard).toBeGreaterThanOrEqual(window.heard);
              window = next;
            }
          }
        }
      }),
    );
  });
});
