// A phone: it encodes its microphone as Opus, in packets of 20 ms, on an unreliable network.
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import type { StreamFormat } from '../../shared/stream/format.ts';
import { finish, type Line, listen } from '../fault/streams/listener.ts';
import { speak } from '../fault/streams/speaker.ts';
import { oggPackets } from '../ogg-packets.ts';
import { liveWebm } from '../webm.ts';
import { clipBytes, clipLike } from './clips.ts';
import { join } from './join.ts';
import type { Shared } from './running.ts';

let running: Shared;
beforeAll(async () => {
  running = await join();
}, 60_000);

const clip = clipLike('.opus');
const file = clipBytes(clip);
/** The first header, and the packets after the second one. */
const [opusHead = file, , ...packets] = oggPackets(file);
const format = (encoding: StreamFormat['encoding']): StreamFormat => ({ encoding, rate: 48_000, channels: 1 });
const textOf = (of: readonly { readonly text: string }[]) => of.map(({ text }) => text).join(' ');
const linesOf = (of: readonly Line[]) => of.map(([text]) => text).join(' ');

it('the packets are 20 ms each (RFC 6716 §3.1)', () => {
  expect(packets.length).toBeGreaterThan(100);
  // Configuration 1, 5, 9, 13, 15, 19, 23, 27 and 31 stand for 20 ms; code 0 for one frame in a packet.
  for (const [head = 0] of packets)
    expect([[1, 5, 9, 13, 15, 19, 23, 27, 31].includes(head >> 3), head & 3]).toEqual([true, 0]);
});

describe('Opus from a phone: /v1/stream', () => {
  it('packet by packet', async () => {
    const speaker = speak(running, format('opus'));
    for (const packet of packets) await speaker.send(packet);
    expect(textOf(await speaker.finish())).toBe(clip.text);
  });

  it('as an Ogg stream, cut anywhere', async () => {
    const speaker = speak(running, format('ogg-opus'));
    for (let at = 0; at < file.length; at += 777) await speaker.send(file.subarray(at, at + 777));
    expect(textOf(await speaker.finish())).toBe(clip.text);
  });
});

describe('Opus from a phone: /v1/listen', () => {
  it('packet by packet', async () => {
    const listener = await listen(running, { params: { encoding: 'opus', sample_rate: '48000' }, frameBytes: 4_096 });
    for (const packet of packets) listener.send(packet);
    expect(linesOf(await finish(listener))).toBe(clip.text);
  });

  it('U1 as WebM of a MediaRecorder, which names its format', async () => {
    const listener = await listen(running, { container: true, frameBytes: 999 });
    listener.send(liveWebm('A_OPUS', opusHead, packets));
    expect(linesOf(await finish(listener))).toBe(clip.text);
  });

  it('U1 as AAC in ADTS, which the worker of the stream decodes', async () => {
    const listener = await listen(running, { container: true, frameBytes: 101 });
    listener.send(new Uint8Array(readFileSync(new URL('../infra/agent/clips/mono-44k.aac', import.meta.url))));
    expect(linesOf(await finish(listener))).toBe('one two');
  });

  it('as an Ogg stream, which names its format', async () => {
    const listener = await listen(running, { container: true, frameBytes: 1_000 });
    listener.send(file);
    expect(linesOf(await finish(listener))).toBe(clip.text);
  });
});
