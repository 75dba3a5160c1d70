// Clients of Deepgram's whose connection breaks in the middle of something that only its beginning explains.
import { describe, expect, it } from 'vitest';
import { makeToken } from './authority.ts';
import { LiveClient, startListener } from './live-client.ts';
import { passTime } from './network.ts';
import { eventually, type Talk } from './stream-double.ts';

const letters = (text: string) => new TextEncoder().encode(text);
const finals = (client: LiveClient) =>
  client.all('Results').flatMap((message) => {
    const { is_final, channel } = message as unknown as {
      is_final: boolean;
      channel: { alternatives: { transcript: string }[] };
    };
    return is_final ? [channel.alternatives[0]?.transcript] : [];
  });

/** µ-law at 8 kHz, of unknown length. */
function wavHeader(): Uint8Array {
  const header = new Uint8Array(44);
  const view = new DataView(header.buffer);
  header.set(letters('RIFF'), 0);
  header.set(letters('WAVEfmt '), 8);
  for (const [at, value] of [[16, 16], [24, 8_000], [28, 8_000]] as const) view.setUint32(at, value, true); // biome-ignore format: pairs
  for (const [at, value] of [[20, 7], [22, 1], [32, 1], [34, 8]] as const) view.setUint16(at, value, true); // biome-ignore format: pairs
  header.set(letters('data'), 36);
  return header;
}

/** A page of Ogg that holds letters; the first one of a stream has the name of the codec. */
const page = (flags: number, text: string) =>
  new Uint8Array([...letters('OggS'), 0, flags, ...new Uint8Array(20), 1, text.length, ...letters(text)]);

async function drop(path: string, before: readonly Uint8Array[], talks: readonly Talk[]) {
  const headers = { authorization: `Bearer ${await makeToken()}`, 'x-deepgram-session-id': crypto.randomUUID() };
  const first = await LiveClient.connect(path, headers);
  for (const piece of before) first.say(piece);
  const bytes = before.reduce((sum, { length }) => sum + length, 0);
  await eventually(() => (talks[0]?.position ?? 0) >= bytes - 44);
  if (before.at(-1)?.at(-1) === '.'.charCodeAt(0)) await first.heard('Results');
  first.drop();
  passTime(2_000);
  return { again: () => LiveClient.connect(path, headers) };
}

describe('§3-16 a Deepgram client that did not name its encoding comes back', () => {
  it('in the middle of a WAV file: what follows is sound as before', async () => {
    const { name, talks } = await startListener();
    const path = `/v1/listen?model=${name}`;
    const { again } = await drop(path, [wavHeader(), letters('before the drop.')], talks);
    const second = await again();
    second.say(letters(`and after ${'_'.repeat(80)}it.`)).say({ type: 'CloseStream' });
    expect(await second.end()).toMatchObject({ code: 1000 });
    expect(second.types).toContain('AuricleResumed');
    expect(second.types).toContain('AuricleGap');
    expect(finals(second)).toEqual(['and after it']);
    expect(talks).toHaveLength(1);
  });

  it('with a new file of the same kind: its header is not heard', async () => {
    const { name, talks } = await startListener();
    const { again } = await drop(`/v1/listen?model=${name}`, [wavHeader(), letters('before.')], talks);
    const second = await again();
    second.say(wavHeader()).say(letters('after it.')).say({ type: 'CloseStream' });
    await second.end();
    expect(finals(second)).toEqual(['after it']);
  });

  it('in the middle of a page of Ogg: the next page is the first that is heard', async () => {
    const { name, talks } = await startListener();
    const { again } = await drop(`/v1/listen?model=${name}`, [page(2, `OpusHead${'_'.repeat(60)}.`)], talks);
    const second = await again();
    const [rest, next] = [
      letters('rest of a page, too long to be a header of any kind that is known'),
      page(0, 'one.'),
    ];
    second.say(rest).say(next.subarray(0, 3)).say(next.subarray(3)).say({ type: 'CloseStream' });
    expect(await second.end()).toMatchObject({ code: 1000 });
    const said = talks[0]?.said ?? [];
    const gap = said.findIndex((one) => 'type' in one && one.type === 'gap');
    const audio = said.slice(gap).flatMap((one) => ('kind' in one ? [one.text] : []));
    expect(gap).toBeGreaterThan(0);
    expect(audio.join('')).toBe(new TextDecoder('latin1').decode(next));
  });

  it('only to end it: what was said meanwhile is told', async () => {
    const { name, talks } = await startListener();
    const { again } = await drop(`/v1/listen?model=${name}`, [wavHeader(), letters('unfinished')], talks);
    const second = await again();
    second.say({ type: 'CloseStream' });
    expect(await second.end()).toMatchObject({ code: 1000 });
    expect(finals(second)).toEqual(['unfinished']);
  });

  it('when nobody knows it any more: told once, for good', async () => {
    const { name } = await startListener();
    const headers = { authorization: `Bearer ${await makeToken()}`, 'x-deepgram-session-id': crypto.randomUUID() };
    const client = await LiveClient.connect(`/v1/listen?model=${name}`, headers);
    client.say(letters('_'.repeat(5_000)));
    expect(await client.end()).toEqual({ code: 1000, reason: 'DATA-0000 audio_live_unsupported' });
    expect(client.messages).toMatchObject([{ type: 'Error', code: 'audio_live_unsupported' }]);
  });
});
