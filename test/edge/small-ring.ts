import { onTestFinished, vi } from 'vitest';
import { AudioRing } from '../../edge/stream/audio-ring.ts';

/** Limits the replay buffers of the isolate to `most` bytes until the test finishes. */
export function limitRings(most: number): void {
  const { hasRoom } = AudioRing.prototype;
  const spy = vi.spyOn(AudioRing.prototype, 'hasRoom').mockImplementation(function (this: AudioRing, bytes, items) {
    return this.bytes + bytes <= most && hasRoom.call(this, bytes, items);
  });
  onTestFinished(() => spy.mockRestore());
}
