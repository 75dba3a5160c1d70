import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PartName } from '../../infra/local/part.ts';
import { wav } from '../wav.ts';
import { clipBytes, clipLike } from './clips.ts';
import { type Running, run } from './running.ts';

// A recording of 100 MB that is mostly silence: bytes to carry, few words to recognise.

let running: Running;
beforeAll(async () => {
  running = await run();
}, 60_000);
afterAll(() => running?.end(), 20_000);

const MB = 2 ** 20;
const spoken = clipLike('weather.wav');

function recording(bytes: number): Uint8Array<ArrayBuffer> {
  const samples = new Int16Array(bytes / 2);
  const speech = clipBytes(spoken);
  const words = new Int16Array(speech.buffer.slice(44, speech.length - (speech.length % 2)));
  samples.set(words, 16_000);
  samples.set(words, samples.length - words.length - 16_000);
  return wav(samples);
}

/** Most memory a part and its children have held so far, in bytes; Linux counts it for us. */
function peakOf(part: PartName): number {
  const parents = new Map<number, number>();
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It has ended meanwhile.
    }
  }
  const own = running.stack.pid(part) ?? -1;
  const tree = [...parents.keys()].filter((pid) => pid === own || parents.get(pid) === own);
  const peaks = tree.map((pid) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0));
  return Math.max(...peaks) * 1024;
}

describe('C5 C10 R1 a 100 MB upload streams', () => {
  it('through Worker and agent, heard at its beginning and its end, and never whole in either', async () => {
    const parts: PartName[] = ['edge', 'agent-aks-westeurope', 'agent-eks-us-east-1'];
    const measurable = process.platform === 'linux';
    const before = measurable ? parts.map(peakOf) : [];
    const form = new FormData();
    form.set('response_format', 'verbose_json');
    form.set('file', new Blob([recording(100 * MB)]), 'long.wav');
    const answer = await fetch(`${running.stack.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.stack.token}`, 'x-auricle-model': 'reference-en' },
      body: form,
    });
    const body = (await answer.json()) as {
      text: string;
      duration: number;
      segments: { start: number; end: number }[];
    };
    expect(answer.status).toBe(200);
    expect(body.text).toBe(`${spoken.text} ${spoken.text}`);
    expect(body.segments).toHaveLength(2);
    expect(body.segments[0]?.start).toBeGreaterThan(0.5);
    expect(body.segments[0]?.start).toBeLessThan(2);
    expect(body.segments[1]?.end).toBeGreaterThan(body.duration - 2);
    if (!measurable) return;
    // Half the upload: what a collector leaves lying about fits below, the upload itself does not.
    for (const [index, part] of parts.entries()) {
      const grown = peakOf(part) - (before[index] ?? 0);
      expect(grown / MB, part).toBeLessThan(100);
    }
  }, 120_000);
});
