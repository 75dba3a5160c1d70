// Early ends of a job: it is no longer wanted, or its audio is too long.
import { describe, expect, it } from 'vitest';
import { type FakeJob, makeShop } from '../../../fake/job.ts';
import { joinSamples, silence, voice, wavFile } from '../fixtures.ts';

/** Forty pieces of about a second; `then` happens with the second one. */
async function planning(then: (double: FakeJob) => void | Promise<void>): Promise<FakeJob> {
  const double = await makeShop({ pieceSeconds: 1 });
  await double.upload(wavFile(joinSamples(...Array.from({ length: 40 }, () => [voice(0.6), silence(0.4)]).flat())));
  const { write } = double.shop.storage;
  Object.assign(double.shop.storage, {
    write: async (...asked: Parameters<typeof write>) => {
      const written = await write(...asked);
      if (double.written.length === 2) await then(double);
      return written;
    },
  });
  return double;
}

describe('an upload that is cancelled while it is cut (C11)', () => {
  it('is left at the next look, and what is not written yet never is', async () => {
    const asked = Promise.withResolvers<void>();
    const double = await planning(async (shop) => {
      shop.unwanted = true;
      await asked.promise;
    });
    Object.assign(double.shop, { wantedMs: 1 });
    const { open } = double.shop.jobsClient;
    Object.assign(double.shop.jobsClient, {
      open: async (job: Parameters<typeof open>[0]) => {
        if (double.unwanted) setImmediate(asked.resolve);
        return open(job);
      },
    });
    expect(await double.do('plan')).toEqual({ type: 'unwanted' });
    expect(double.written).toEqual(['1/pieces/0', '1/pieces/1']);
  });

  it('is left at a write that is refused', async () => {
    const double = await planning((shop) => {
      shop.unwanted = true;
      shop.troubles.push({ name: '1/pieces/2', trouble: 'closed' });
    });
    expect(await double.do('plan')).toEqual({ type: 'unwanted' });
    expect(double.written).toEqual(['1/pieces/0', '1/pieces/1', '1/pieces/2']);
  });

  it('goes on while the back office does not answer', async () => {
    const asked = Promise.withResolvers<void>();
    const double = await planning(() => asked.promise);
    Object.assign(double.shop, { wantedMs: 1 });
    const { open } = double.shop.jobsClient;
    let opened = false;
    Object.assign(double.shop.jobsClient, {
      open: async (job: Parameters<typeof open>[0]) => {
        if (!opened) {
          opened = true;
          return open(job);
        }
        setImmediate(asked.resolve);
        return { ok: false, refusal: { reason: 'uploads_unavailable' } };
      },
    });
    expect((await double.do('plan')).type).toBe('done');
  });
});

describe('sound of one file (C11)', () => {
  it('is not unpacked beyond what its tenant may use in a day', async () => {
    const double = await makeShop();
    await double.upload(wavFile(voice(5)));
    Object.assign(double.row, { secondsMax: 4 });
    const refusal = { reason: 'audio_too_long', params: { limit: 4 } };
    expect(await double.do('plan')).toMatchObject({ type: 'refused', refusal });
    Object.assign(double.row, { secondsMax: 6 });
    expect((await double.do('plan')).type).toBe('done');
  });
});
