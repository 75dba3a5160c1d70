import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedecoding, redecodeAfter } from '../../../../infra/pool/agent/stream/redecode.ts';
import { createFakeClock } from '../../../fake/clock.ts';
import { createTextEngine, textModel, textTensor } from '../../../fake/text-engine.ts';
import { silence, voice } from '../fixtures.ts';
import { linear16, type StreamBench, startStreamBench } from './start-stream.ts';

const { engine, lengths, prompts } = createTextEngine();
let bench: StreamBench;
beforeAll(async () => {
  bench = await startStreamBench({}, { engine, models: [textModel('test-en', 0.5)] });
});
afterAll(() => bench.stop());

describe('R1 live sound for a model that takes whole recordings', () => {
  it('decodes growing sound until two decodings agree', async () => {
    const link = await bench.dial();
    await link.open({ options: { interim: true, endpointingMs: false } });
    for (const count of [1, 2, 3]) {
      await link.audio(linear16(voice(0.8)));
      await link.until(() => (link.all('interim').at(-1)?.words.length ?? 0) >= 2 * count - 1);
    }
    const interims = link.all('interim').map(({ text, stable }) => ({ words: text.split(' '), stable }));
    expect(interims[0]?.stable).toBe(0);
    expect(interims.at(-1)?.stable).toBeGreaterThan(0);
    for (const [i, { words, stable }] of interims.entries())
      expect(interims[i + 1]?.words.slice(0, stable) ?? words.slice(0, stable)).toEqual(words.slice(0, stable));
    await link.audio(linear16(silence(0.2)));
    await link.end();
    await link.event('final');
    const [segment] = link.all('segment');
    expect(segment?.text).toMatch(/^alpha bravo charlie delta echo /);
    expect(segment?.words[1]?.start).toBeCloseTo((segment?.words[0]?.start ?? 0) + 0.4, 3);
  });

  it('U5 gets the terms of the stream as its prompt', async () => {
    prompts.length = 0;
    const link = await bench.dial();
    const options = { interim: false, endpointingMs: false } as const;
    await link.open({ options: { ...options, terms: [{ text: 'Kowalski' }, { text: 'Zyrtec' }] } });
    await link.audio(linear16(voice(0.6)));
    await link.end();
    await link.event('final');
    expect(prompts).toEqual(['Kowalski, Zyrtec']);
  });

  it.each([
    ['twice as often as it must while the engine is quick', 50, 6_400],
    ['less often when decodings take longer', 300, 9_600],
    ['as often as it must when the engine is slow', 2_000, 12_800],
  ])('decodes %s', (_, tookMs, samples) => {
    expect(redecodeAfter(12_800, tookMs)).toBe(samples);
  });

  it('decodes the same sound once when the utterance ends with it', async () => {
    const { recogniser } = textModel('test-en', 0.5);
    if (!recogniser || !('text' in recogniser)) throw new Error('no text model');
    let decodings = 0;
    const run = async () => {
      decodings++;
      return { ok: true, value: new Map([['TEXT', textTensor('TEXT', 'good morning')]]) } as const;
    };
    const redecoding = createRedecoding(
      {
        ...{ recogniser, bias: undefined, class: 'realtime', live: { hopSamples: 8_000 } },
        ...{ clock: createFakeClock().clock, signal: new AbortController().signal },
        steps: { run, queued: () => ({ realtime: 0, interactive: 0, default: 0, batch: 0 }), busy: () => 0 },
      },
      0,
    );
    const read = (from: number, to: number) => new Float32Array(to - from);
    const ended = async (samples: number) => redecoding.finish(read, { samples, ending: 'endpoint' }, 0);
    await redecoding.push(read, 16_000);
    expect(await ended(16_000)).toMatchObject({ ok: true, value: [{ text: 'good morning', end: 1 }] });
    expect(decodings).toBe(1);
    await ended(15_200);
    expect(decodings).toBe(2);
  });

  it('decodes an utterance once for a client without interims', async () => {
    lengths.length = 0;
    const link = await bench.dial();
    await link.open({ options: { interim: false, endpointingMs: false } });
    await link.audio(linear16(voice(2)));
    await link.end();
    await link.event('final');
    expect(link.all('segment')).toHaveLength(1);
    expect(lengths).toHaveLength(1);
  });
});
