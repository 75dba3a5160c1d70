import { describe, expect, it, vi } from 'vitest';
import { CaptureBuffer } from '../../../edge/client/capture-buffer.ts';

const chunk = (value: number) => Uint8Array.of(value);

function open(chunksMax = 3) {
  const buffer = new CaptureBuffer(chunksMax);
  const release = vi.fn();
  buffer.release = release;
  return { buffer, release };
}

async function readAll(buffer: CaptureBuffer): Promise<number[]> {
  const values: number[] = [];
  for await (const [value = -1] of buffer.read()) values.push(value);
  return values;
}

describe('U14 sound of a microphone that waits for its reader', () => {
  it('comes in order, also to a reader that waits, and ends after the last', async () => {
    const { buffer, release } = open();
    const reading = readAll(buffer);
    for (let value = 0; value < 6; value++) {
      buffer.push(chunk(value));
      await Promise.resolve();
    }
    buffer.end();
    expect(release).toHaveBeenCalledOnce();
    expect(await reading).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('releases the device and fails when it is full', async () => {
    const { buffer, release } = open(3);
    for (let value = 0; value < 4; value++) buffer.push(chunk(value));
    expect(release).toHaveBeenCalledOnce();
    const values: number[] = [];
    const read = async () => {
      for await (const [value = -1] of buffer.read()) values.push(value);
    };
    await expect(read()).rejects.toMatchObject({ name: 'StreamError', reason: 'microphone_overflow' });
    expect(values).toEqual([0, 1, 2]);
  });

  it('releases the device when the reader stops early', async () => {
    const { buffer, release } = open();
    buffer.push(chunk(1));
    for await (const _ of buffer.read()) break;
    expect(release).toHaveBeenCalledOnce();
  });
});
