import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SendWindow } from '../../../edge/stream/send-window.ts';

const step = fc.oneof(
  fc.record({ send: fc.integer({ min: 1, max: 300 }) }),
  fc.record({ acknowledge: fc.integer({ min: -50, max: 400 }) }),
);

it('never has more in flight than its size, but for one message', () => {
  fc.assert(
    fc.property(fc.array(step), fc.nat(1_000), (steps, from) => {
      const window = new SendWindow(from);
      for (const one of steps) {
        const { sent, acknowledged } = window;
        if ('send' in one) {
          const may = window.maySend(one.send, 100);
          expect(may).toBe(sent === acknowledged || sent + one.send - acknowledged <= 100);
          if (!may) continue;
          window.send(one.send);
          expect(window.sent - window.acknowledged).toBeLessThanOrEqual(Math.max(100, one.send));
        } else {
          const position = acknowledged + one.acknowledge;
          expect(window.acknowledge(position)).toBe(position <= sent);
          expect(window.acknowledged).toBe(position <= sent ? Math.max(acknowledged, position) : acknowledged);
        }
      }
    }),
  );
});
