import { describe, expect, it } from 'vitest';
import type { AgentRequest } from '../../../../infra/pool/agent/request/admitted-request.ts';
import { speak } from '../../../../infra/pool/agent/server/speak.ts';
import type { SpeechOptions } from '../../../../infra/pool/agent/tts/speaker.ts';
import type { CallEvent } from '../../../../shared/kserve/call.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';

const revision = `sha256:${'1'.repeat(64)}`;

interface Turn {
  readonly text: string;
  readonly options: SpeechOptions;
  readonly finish: (sound: Result<Int16Array>) => void;
}

/** Serves one request with a voice whose sentences the test finishes, in the order in which they begin. */
function open(text: string, head: Record<string, unknown> = {}) {
  const cancel = new AbortController();
  const begun: Turn[] = [];
  const sent: string[] = [];
  const events: CallEvent[] = [];
  const speaker = {
    model: 'voice',
    sampleRate: 16_000,
    speak: (sentence: string, options: SpeechOptions, signal: AbortSignal) =>
      new Promise<Result<Int16Array>>((finish) => {
        begun.push({ text: sentence, options, finish });
        signal.addEventListener('abort', () => finish(no(refuse('deadline_passed'))));
      }),
  };
  const answer = {
    async send(event: CallEvent) {
      sent.push(event.type);
      events.push(event);
    },
    sendBody: async (bytes: Uint8Array) => void sent.push(`${bytes.length} bytes`),
    cut: () => void sent.push('cut'),
  };
  async function* records() {
    yield ok({ plaintext: new TextEncoder().encode(text), final: true });
  }
  const format = { encoding: 'linear16', container: 'none', sampleRate: 16_000 };
  const work = {
    head: { v: 1, task: 'speak', model: 'voice', ...format, ...head },
    ticket: { model: 'voice', class: 'realtime', tenant: 'clinic' },
    model: { description: { name: 'voice', revision, languages: ['en'], ssml: ['speak', 'p'] }, speaker },
    ...{ answer, records: records(), signal: cancel.signal, deadline: 9 },
  };
  const outcome = speak(work as unknown as AgentRequest);
  return { outcome, begun, sent, events, cancel };
}

const sound = (samples: number) => ok(new Int16Array(samples).fill(7));
const until = (condition: () => boolean) => expect.poll(condition, { interval: 1 }).toBe(true);

describe('R2 speech of one request', () => {
  it('sends a sentence while the next one is synthesised', async () => {
    const { outcome, begun, sent, events } = open('One. Two. Three.', { voice: 'ann', rate: 1.5 });
    await until(() => begun.length === 1);
    for (const count of [2, 3]) {
      begun[count - 2]?.finish(sound(1_600));
      await until(() => sent.length === count);
      expect(begun).toHaveLength(count);
    }
    begun[2]?.finish(sound(1_600));
    expect(await outcome).toEqual({ ok: true, value: undefined });
    const paused = 2 * (Math.round((250 / 1.5) * 16) + 1_600);
    expect(sent).toEqual(['answer', '3200 bytes', `${paused} bytes`, `${paused} bytes`, 'final']);
    expect(events.at(-1)).toMatchObject({ model: 'voice', revision, durationSeconds: expect.closeTo(0.633, 3) });
    expect(begun[0]).toMatchObject({
      text: 'One.',
      options: { voice: 'ann', rate: 1.5, pitch: 1, place: { class: 'realtime', tenant: 'clinic', deadline: 9 } },
    });
  });

  it.each([
    ['<!-- x --><speak>Hi</speak>', 'Hi'],
    ['<?xml version="1.0"?><speak>Hi</speak>', 'Hi'],
    ['<3 is less than 5 < 6', '<3 is less than 5 < 6'],
  ])('reads %s as markup only if it begins with it', async (text, spoken) => {
    const { outcome, begun } = open(text);
    await until(() => begun.length === 1);
    expect(begun[0]?.text).toBe(spoken);
    begun[0]?.finish(sound(16));
    expect(await outcome).toMatchObject({ ok: true });
  });

  it('ends without a final event when a later sentence fails', async () => {
    const { outcome, begun, sent } = open('One. Two.');
    await until(() => begun.length === 1);
    begun[0]?.finish(sound(16));
    await until(() => begun.length === 2);
    begun[1]?.finish(no(refuse('engine_failed')));
    expect(await outcome).toMatchObject({ ok: false, refusal: { reason: 'engine_failed' } });
    expect(sent).not.toContain('final');
  });

  it('stops at the engine when the client leaves', async () => {
    const { outcome, begun, cancel } = open('One. Two.');
    await until(() => begun.length === 1);
    cancel.abort();
    expect(await outcome).toMatchObject({ ok: false });
    expect(begun).toHaveLength(1);
  });

  it.each([
    ['text_unspeakable', '… !', {}],
    ['text_invalid', 'Hello 你好 world', {}],
    ['text_too_long', 'a'.repeat(16_385), {}],
    ['text_invalid', '<speak><break/>one</speak>', {}],
    ['text_invalid', '<prosody rate="fast">Hi</prosody>', {}],
    ['text_invalid', '<!DOCTYPE speak []><speak>Hi</speak>', {}],
    ['text_invalid', ' <p>Hi</p>', {}],
    ['seal_broken', 'One.', { encoding: 'mp3' }],
    ['ticket_invalid', 'One.', { model: 'other' }],
  ])('refuses with %s before anything is sent', async (reason, text, head) => {
    const { outcome, sent } = open(text, head);
    expect(await outcome).toMatchObject({ ok: false, refusal: { reason } });
    expect(sent).toEqual([]);
  });
});
