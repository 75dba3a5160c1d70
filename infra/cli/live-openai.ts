// A live stream as clients of OpenAI's realtime transcription make it.
import { z } from 'zod';
import type { Dialect } from './live.ts';
import { openSocket, socketUrl, told } from './live-socket.ts';

/** What OpenAI takes, and so what its clients send. */
const RATE = 24_000;
const TRANSCRIPTION = 'conversation.item.input_audio_transcription';

const item = z.object({ item_id: z.string() });
const said = z.object({
  code: z.string().nullish(),
  message: z.string().optional(),
  request_id: z.string().optional(),
});
const message = z.discriminatedUnion('type', [
  z.object({ type: z.literal('session.created') }),
  z.object({ type: z.literal('session.updated') }),
  z.object({ type: z.literal('input_audio_buffer.cleared') }),
  item.extend({ type: z.literal('input_audio_buffer.committed') }),
  item.extend({ type: z.literal('input_audio_buffer.speech_stopped'), audio_end_ms: z.number() }),
  item.extend({ type: z.literal(`${TRANSCRIPTION}.delta`), delta: z.string() }),
  item.extend({ type: z.literal(`${TRANSCRIPTION}.completed`), transcript: z.string() }),
  item.extend({ type: z.literal(`${TRANSCRIPTION}.failed`), error: said }),
  z.object({ type: z.literal('error'), error: said }),
]);

const NOTHING_LEFT = 'input_audio_buffer_commit_empty';

/**
 * The dialect tells no times of words: only an utterance as a whole has an end (`speech_stopped`), so there are final
 * latencies, one for each utterance, and no partial ones.
 */
export const openai: Dialect = {
  rateFor: () => RATE,
  open({ edge, token, model, language, onNews }) {
    const utterances = new Map<string, { readonly number: number; text: string; end: number | undefined }>();
    const pending = new Set<string>();
    let ending = false;
    let count = 0;
    const of = (id: string) => {
      const known = utterances.get(id) ?? { number: count++, text: '', end: undefined as number | undefined };
      utterances.set(id, known);
      return known;
    };
    const transcription = { model, ...(language !== undefined && { language }) };
    const input = { format: { type: 'audio/pcm', rate: RATE }, transcription, turn_detection: { type: 'server_vad' } };
    const session = { type: 'transcription', audio: { input } };
    return openSocket({
      url: socketUrl(edge, '/v1/realtime?intent=transcription'),
      headers: { authorization: `Bearer ${token}` },
      begunWhenOpen: false,
      // Nothing is left to be cleared: the answer tells that the commit was dealt with, which may have been empty.
      end: ['commit', 'clear'].map((what) => JSON.stringify({ type: `input_audio_buffer.${what}` })),
      frame(frame) {
        return JSON.stringify({ type: 'input_audio_buffer.append', audio: Buffer.from(frame).toString('base64') });
      },
      hear(said, say, now) {
        const read = message.safeParse(said).data;
        if (!read) return undefined;
        if (read.type === 'session.created') say(JSON.stringify({ type: 'session.update', session }));
        if (read.type === 'session.updated') return 'begun';
        if (read.type === 'error') {
          const { code, message: text, request_id: request } = read.error;
          return code === NOTHING_LEFT ? undefined : { refused: code ?? 'error', message: told(text, request) };
        }
        if (read.type === 'input_audio_buffer.cleared') ending = true;
        if (!('item_id' in read)) return ending && pending.size === 0 ? 'over' : undefined;
        const utterance = of(read.item_id);
        if (read.type === 'input_audio_buffer.committed') pending.add(read.item_id);
        if (read.type === 'input_audio_buffer.speech_stopped') utterance.end = read.audio_end_ms / 1_000;
        if (read.type === `${TRANSCRIPTION}.delta`) {
          utterance.text += read.delta;
          const { number, text } = utterance;
          onNews({ type: 'words', text, utterance: number, wordEnds: [], final: false }, now);
        }
        if (read.type === `${TRANSCRIPTION}.failed`)
          onNews({ type: 'trouble', code: read.error.code ?? 'failed' }, now);
        if (read.type === `${TRANSCRIPTION}.completed`) {
          const wordEnds = utterance.end === undefined ? [] : [utterance.end];
          const shown = { utterance: utterance.number, wordEnds, final: true, untimed: true } as const;
          onNews({ type: 'words', text: read.transcript, ...shown }, now);
        }
        if (read.type !== `${TRANSCRIPTION}.completed` && read.type !== `${TRANSCRIPTION}.failed`) return undefined;
        pending.delete(read.item_id);
        utterances.delete(read.item_id);
        return ending && pending.size === 0 ? 'over' : undefined;
      },
    });
  },
};
