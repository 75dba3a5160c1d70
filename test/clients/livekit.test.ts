import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clipLike, clipPath } from '../stack/clips.ts';
import { join } from '../stack/join.ts';
import type { Shared } from '../stack/running.ts';
import { wantsLivekit } from './install.ts';
import { type Python, startPython } from './python.ts';

const spoken = clipLike('balance.wav');
const given = { file: clipPath(spoken), words: spoken.text.split(' ').length };
interface Listened {
  readonly kinds: readonly string[];
  readonly text: string;
}

// 420 MB of packages for three tests, run with AURICLE_LIVEKIT=1.
describe.skipIf(!wantsLivekit)('C10 R1 LiveKit’s plugins, unmodified (with AURICLE_LIVEKIT=1)', () => {
  let running: Shared;
  let livekit: Python;
  beforeAll(async () => {
    running = await join();
    livekit = startPython('livekit_calls', { EDGE: running.stack.url, TOKEN: running.stack.token }, 'livekit');
  });
  afterAll(() => livekit?.end());

  it.each(['through_deepgram', 'through_openai'])('live, %s', async (way) => {
    const { kinds, text } = await livekit.call<Listened>(way, given);
    expect(text).toBe(spoken.text);
    expect(kinds).toEqual(expect.arrayContaining(['start_of_speech', 'interim_transcript', 'final_transcript']));
  });

  it('a recording', async () => {
    expect(await livekit.call('at_once', { file: given.file })).toBe(spoken.text);
  });
});
